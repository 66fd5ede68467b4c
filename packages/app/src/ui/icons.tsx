// Icons, drawn as lines on a grid of 24. The buttons have labels, so icons are hidden from screen readers.

const PATHS = {
  attach: "M19 11.5l-7.3 7.3a4.6 4.6 0 0 1-6.5-6.5l7.6-7.6a3 3 0 0 1 4.3 4.3l-7.6 7.6a1.5 1.5 0 0 1-2.1-2.1l7-7",
  add: "M12 5v14M5 12h14",
  back: "M15 6l-6 6 6 6",
  camera: "M4 8h3.5L9 5.5h6L16.5 8H20v11H4zM12 10a3.3 3.3 0 1 1 0 6.6 3.3 3.3 0 0 1 0-6.6z",
  check: "M5 12.5l4.5 4.5L19 7.5",
  chip: "M8 8h8v8H8zM5 5h14v14H5zM9 2v3M15 2v3M9 19v3M15 19v3M2 9h3M2 15h3M19 9h3M19 15h3",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h10v11H9zM15 9V4H5v11h4",
  cube: "M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9",
  down: "M12 5v13M6 12.5l6 6 6-6",
  edit: "M5 19h3.5L19 8.5 15.5 5 5 15.5zM13 7.5l3.5 3.5",
  export: "M12 4v11M7.5 11l4.5 4.5 4.5-4.5M5 14v6h14v-6",
  forward: "M9 6l6 6-6 6",
  image: "M4 5h16v14H4zM4 16l4.5-4.5 4 4 2.5-2.5 5 5M15.5 8.2a1.2 1.2 0 1 1 0 2.4 1.2 1.2 0 0 1 0-2.4z",
  import: "M12 15V4M7.5 8L12 3.5 16.5 8M5 14v6h14v-6",
  microphone: "M12 3.5a2.7 2.7 0 0 1 2.7 2.7v5.3a2.7 2.7 0 0 1-5.4 0V6.2A2.7 2.7 0 0 1 12 3.5zM6 11.5a6 6 0 0 0 12 0M12 17.5v3M9 20.5h6",
  moon: "M19 14.5A7.5 7.5 0 0 1 9.5 5a7.5 7.5 0 1 0 9.5 9.5z",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  retry: "M19 12a7 7 0 1 1-2.3-5.2M19 4v4h-4",
  send: "M12 19V6M6 11.5L12 5.5l6 6",
  shield: "M12 3l7 2.5v6c0 4.5-3 7.5-7 9.5-4-2-7-5-7-9.5v-6zM8.8 12l2.3 2.3 4.1-4.3",
  sidebar: "M4 5h16v14H4zM9.5 5v14",
  sliders: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.8v4.4M9 14.8v4.4",
  sound: "M5 9.5h3l4-3.5v12l-4-3.5H5zM15 9.5a3.5 3.5 0 0 1 0 5M17.3 7a7 7 0 0 1 0 10",
  stop: "M7 7h10v10H7z",
  sun: "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4",
  think: "M9 17.5h6M10 20.5h4M12 3.5a6 6 0 0 1 3.6 10.8c-.7.5-1 1.1-1 1.9v1.3H9.4v-1.3c0-.8-.3-1.4-1-1.9A6 6 0 0 1 12 3.5z",
  trash: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
