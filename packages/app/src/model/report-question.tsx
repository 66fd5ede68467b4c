// Asks whether errors may be reported, when a link with `?report` requests it.

import { Button } from "../ui/button";
import { openDialog } from "../ui/dialog";
import { FactsList } from "../ui/facts";

export async function askToReport(): Promise<boolean> {
  const result = await openDialog(
    "Send error reports to this server?",
    (close) => (
      <>
        <div class="dialog-text">
          <p>The link that you opened asks for this. It's your choice.</p>
          <FactsList
            rows={[
              ["What is sent", "Error codes and messages, which may contain the name or address of the model file, and the name of your browser. Never the content of a chat."],
              ["To whom", `${location.host}, the server that this page came from. It writes the reports to its log.`],
              ["Until when", "Until you turn it off: Settings, “Report errors to this server”."],
            ]}
          />
        </div>
        <div class="dialog-actions">
          <Button onClick={() => close("")}>Not now</Button>
          <Button kind="primary" onClick={() => close("yes")}>
            Allow
          </Button>
        </div>
      </>
    ),
    { class: "report-question" },
  );
  return result === "yes";
}
