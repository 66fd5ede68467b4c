//! `rullama run`: a chat in the terminal, or one question.

mod attached;

use std::{
    io::{self, IsTerminal as _},
    time::Duration,
};

use rullama_chat::{Message, ReplyParts, Role};
use rullama_engine::{ChatOptions, Engine, Reply, Session};
use rullama_gemma::Medium;
use rullama_media::Budget;
use rustyline::{DefaultEditor, error::ReadlineError};
use serde_json::{Map, Value, json};

use super::prompt;
use crate::{
    arguments::{AttachArguments, RunArguments, Switch},
    engine::{self, Laps},
    failure::Failure,
    media::{self, Decoded},
    media_source, model, output,
    request::Request,
    writer::ReplyWriter,
};

const HELP: &str = "\
/set OPTION VALUE    Set temperature, top_k, top_p, min_p, repeat_penalty, seed, num_predict, stop, ...
                     (/set parameter OPTION VALUE does the same)
/set think on|off    Let the model think before it answers (or /set think, /set nothink)
/set verbose on|off  Show the speed after each reply
/set system TEXT     Start over with this system prompt
/show                Show the options and the length of the chat
/image FILE          Attach an image to the next message; a path in a message does the same
/audio FILE          Attach a sound to the next message
/clear               Start over, without attachments
/bye                 Leave
\"\"\"                  Begin and end a message of several lines

Ctrl-C stops a reply; the chat goes on.
";

pub(super) async fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let mut words = arguments.words.clone();
    let model = match (&arguments.model_option, &arguments.model) {
        // With --model, every argument belongs to the prompt.
        (Some(model), Some(first)) => {
            words.insert(0, first.to_string_lossy().into_owned());
            Some(model)
        }
        (option, argument) => option.as_ref().or(argument.as_ref()),
    };
    if arguments.prompt.is_some() && !words.is_empty() {
        return Err(Failure::new("the prompt is given twice, as an argument and as an option")
            .hint("leave one of them out")
            .usage());
    }
    // Several words are one prompt, so that it works without quotes too.
    let words = (!words.is_empty()).then(|| words.join(" "));
    let model = model.map(|model| model.as_os_str());
    if let Some(text) = model.and_then(|model| model.to_str())
        && text.contains(' ')
        && !model::names_a_model(text.as_ref())
    {
        return Err(Failure::new(format!("`{text}` is not a model"))
            .hint("put the model before the question, as in `rullama run demo \"What is rullama?\"`"));
    }
    let opened = model::open_or_demo(model).await?;
    let AttachArguments { image, audio, towers } = &arguments.attach;
    let opened = opened.with_towers(towers.projector.as_deref()).await?;
    let reads = Medium::of(&opened.model);
    let asked = words.as_ref().or(arguments.prompt.as_ref());
    let asked = asked.map(|text| attached::in_question(text, &reads)).transpose()?;
    let (question, dropped) = asked.map(|typed| (typed.text, typed.files)).unzip();
    // Decoded first: loading a model takes longer than finding out that a file is not there.
    let given = [(image, Medium::Vision), (audio, Medium::Audio)].into_iter();
    let given = given.flat_map(|(paths, medium)| paths.iter().map(move |path| (medium, path.clone())));
    let mut files = Vec::new();
    for (medium, path) in given.chain(dropped.unwrap_or_default()) {
        let decoded = Decoded::read(&path, medium)?;
        decoded.check(&opened.model)?;
        files.push(decoded);
    }
    let generate = engine::options(&opened, &arguments.sampling)?;
    // The store's system prompt and messages come before the first message.
    let mut defaults = Request::message("");
    defaults.messages.clear();
    defaults.prepend_defaults(&opened)?;
    let engine = engine::load(opened, arguments.backend, &arguments.load, generate.context).await?;
    let think = arguments.think != Some(Switch::Off);
    let options = ChatOptions { generate, think, ..ChatOptions::default() };
    let mut chat = Chat::new(&engine, defaults.messages, options, arguments.verbose)?;
    chat.budget = towers.budget.unwrap_or_default();
    for decoded in files {
        // One question needs no confirmation: standard output is for the answer.
        chat.attach(decoded, question.is_none()).await?;
    }
    if let Some(question) = question {
        return chat.reply(&question).await;
    }
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        say("Type a message, or /help for commands and /bye to leave.")?;
    }
    let mut editor = DefaultEditor::new().map_err(input_failed)?;
    let mut blank = true;
    while let Some(typed) = read(&mut editor, &reads)? {
        blank &= matches!(&typed, Typed::Message(text) if text.is_empty());
        match typed {
            Typed::Command(command) => match command.as_str() {
                "bye" | "exit" | "quit" => break,
                command => chat.command(command).await?,
            },
            Typed::Message(text) if text.is_empty() => {}
            Typed::WithFiles(typed) => chat.with_files(typed).await?,
            Typed::Message(text) => chat.message(&text).await?,
        }
    }
    // On a terminal, leaving without a message is nothing unusual.
    if blank && !io::stdin().is_terminal() {
        return Err(prompt::nothing_piped());
    }
    Ok(())
}

/// A line of the user: a message for the model, or a command for the program.
enum Typed {
    Message(String),
    /// A message with the paths of images and sounds in it.
    WithFiles(media_source::Typed),
    /// Without its slash.
    Command(String),
}

impl Typed {
    /// Reads a line. Only what the model takes is attached; a path alone always is, so that the chat says why it can't be.
    fn line(line: &str, reads: &[Medium]) -> Self {
        let command = line.trim().strip_prefix('/');
        // Commands are words; a path that begins with a slash has more in it.
        let is_word = |text: &str| text == "?" || text.chars().all(char::is_alphabetic);
        let first = command.map(|text| text.split_whitespace().next().unwrap_or_default());
        let typed = media_source::typed(line);
        if !first.is_some_and(is_word) && typed.is_for(reads) {
            return Self::WithFiles(typed);
        }
        match command {
            Some(command) => Self::Command(command.trim().to_owned()),
            None => Self::quoted(line),
        }
    }

    /// Quoted text is always a message, even if it begins with a slash.
    fn quoted(text: &str) -> Self {
        Self::Message(text.trim().to_owned())
    }
}

/// Reads a line, or several lines between triple quotes; `None` at the end of the input.
fn read(editor: &mut DefaultEditor, reads: &[Medium]) -> Result<Option<Typed>, Failure> {
    let mut message: Option<String> = None;
    loop {
        let prompt = if message.is_some() { "... " } else { ">>> " };
        let line = match editor.readline(prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                say("Press Ctrl-D or type /bye to leave.")?;
                message = None;
                continue;
            }
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                say("That line is not UTF-8 text.")?;
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(message.as_deref().map(Typed::quoted)),
            Err(error) => return Err(input_failed(error)),
        };
        // A chat can go on without a history.
        let _ = editor.add_history_entry(&line);
        match &mut message {
            None => match line.trim_start().strip_prefix("\"\"\"") {
                None => return Ok(Some(Typed::line(&line, reads))),
                Some(rest) => match rest.trim_end().strip_suffix("\"\"\"") {
                    Some(whole) => return Ok(Some(Typed::quoted(whole))),
                    None => message = Some(format!("{rest}\n")),
                },
            },
            Some(text) => match line.trim_end().strip_suffix("\"\"\"") {
                Some(last) => {
                    text.push_str(last);
                    return Ok(Some(Typed::quoted(text)));
                }
                None => {
                    text.push_str(&line);
                    text.push('\n');
                }
            },
        }
    }
}

fn input_failed(error: ReadlineError) -> Failure {
    Failure::new("the input can't be read").caused_by(error)
}

/// A chat and its settings.
struct Chat {
    session: Session,
    /// The messages before the user's first one.
    opening: Vec<Message>,
    messages: Vec<Message>,
    options: ChatOptions,
    verbose: bool,
    /// What goes with the next message: names in the media of `options`.
    attached: Vec<(Medium, String)>,
    /// The most tokens of an image.
    budget: Budget,
}

impl Chat {
    fn new(
        engine: &Engine,
        opening: Vec<Message>,
        options: ChatOptions,
        verbose: bool,
    ) -> Result<Self, Failure> {
        let (session, messages) = (engine::session(engine)?, opening.clone());
        let (attached, budget) = (Vec::new(), Budget::default());
        Ok(Self { session, opening, messages, options, verbose, attached, budget })
    }

    /// Answers a message. A failure is shown and does not end the chat.
    async fn message(&mut self, text: &str) -> Result<(), Failure> {
        match self.reply(text).await {
            Err(failure) if !failure.is_closed_pipe() => complain(&failure),
            result => result,
        }
    }

    /// Sends a message and shows the reply until it ends or the user presses Ctrl-C.
    async fn reply(&mut self, text: &str) -> Result<(), Failure> {
        let mut message = Message::user(text);
        for (medium, name) in &self.attached {
            media::name_in(&mut message, *medium, name);
        }
        self.messages.push(message);
        let mut clock = Laps::start();
        let mut reply = match self.session.chat(&self.messages, &self.options) {
            Ok(reply) => reply,
            Err(error) => {
                self.messages.pop();
                return Err(error.into());
            }
        };
        // They are part of the conversation now.
        self.attached.clear();
        let mut writer = ReplyWriter::new();
        let mut prompt_time = Duration::ZERO;
        // Ctrl-C ends the reply where it is.
        let shown = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Ok(()),
            shown = show(&mut reply, &mut writer, &mut clock, &mut prompt_time) => shown,
        };
        writer.end()?;
        let (usage, parts, reason) = (reply.usage(), reply.parts().clone(), reply.finish_reason());
        drop(reply);
        // A reply that was stopped before its first token leaves no message.
        if parts != ReplyParts::default() {
            self.messages.push(parts.into_message());
        }
        shown?;
        engine::note_if_cut(reason, &usage, self.options.generate.max_tokens);
        if self.verbose {
            let rate = |tokens: usize, time: Duration| tokens as f64 / time.as_secs_f64().max(1e-9);
            let read = usage.prompt_tokens - usage.reused_tokens;
            let generate = clock.lap();
            say(&format!(
                "prompt: {read} new tokens, {:.1} tokens/s; reply: {} tokens, {:.1} tokens/s",
                rate(read, prompt_time),
                usage.generated_tokens,
                rate(usage.generated_tokens.saturating_sub(1), generate)
            ))?;
        }
        Ok(())
    }

    async fn command(&mut self, command: &str) -> Result<(), Failure> {
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match (name, rest.trim()) {
            ("help" | "?", _) => say(HELP),
            ("clear", _) => {
                self.clear();
                say("Started a new chat.")
            }
            ("show", _) => self.show(),
            ("image" | "audio", "") => say(&format!("/{name} takes the path of a file.")),
            ("image", path) => self.attach_file(Medium::Vision, &media_source::given(path)).await.map(drop),
            ("audio", path) => self.attach_file(Medium::Audio, &media_source::given(path)).await.map(drop),
            ("set", setting) => self.set(setting),
            _ => say(&format!("There is no command /{name}. /help lists the commands.")),
        }
    }

    fn clear(&mut self) {
        self.messages = self.opening.clone();
        self.attached.clear();
        self.options.media.clear();
        self.session.clear();
    }

    fn set(&mut self, setting: &str) -> Result<(), Failure> {
        let (name, value) = setting.split_once(char::is_whitespace).unwrap_or((setting, ""));
        let value = value.trim();
        // Ollama writes /set think, /set nothink, /set verbose and /set quiet.
        let on = match (name, value) {
            ("think" | "verbose", "" | "on" | "true") => true,
            ("think" | "verbose", "off" | "false") | ("nothink" | "quiet", "") => false,
            ("think" | "verbose", _) => return say(&format!("/set {name} takes on or off.")),
            ("system", _) => return self.set_system(value),
            ("parameter", _) => {
                let (name, value) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
                return self.set_option(name, value.trim());
            }
            _ => return self.set_option(name, value),
        };
        let (what, setting) = match name {
            "think" | "nothink" => ("think", &mut self.options.think),
            _ => ("verbose", &mut self.verbose),
        };
        *setting = on;
        say(&format!("Set {what} to {}.", if on { "on" } else { "off" }))
    }

    /// Starts over with this system prompt, or with none.
    fn set_system(&mut self, prompt: &str) -> Result<(), Failure> {
        self.opening.retain(|message| message.role != Role::System);
        if !prompt.is_empty() {
            self.opening.insert(0, Message::system(prompt));
        }
        self.clear();
        say(if prompt.is_empty() {
            "Removed the system prompt and started a new chat."
        } else {
            "Set the system prompt and started a new chat."
        })
    }

    /// Sets an option by Ollama's name. A value that is not JSON is taken as text.
    fn set_option(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let typed = value;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        let value = if name == "stop" && value.is_string() { json!([value]) } else { value };
        match self.options.generate.apply(&Map::from_iter([(name.to_owned(), value)])) {
            Ok(_) if name == "num_ctx" => {
                say("The context length is fixed once a model is loaded. Start rullama again with --context.")
            }
            Ok(warnings) if warnings.is_empty() => say(&format!("Set {name} to {typed}.")),
            Ok(_) => say(&format!("There is no option `{name}`. /help lists some.")),
            Err(error) => complain(&error.into()),
        }
    }

    fn show(&self) -> Result<(), Failure> {
        let (used, context) = (self.session.history().len(), self.session.engine().context());
        let generate = &self.options.generate;
        let mut options = json!(generate.sampling);
        options["num_predict"] = generate.max_tokens.into();
        options["stop"] = generate.stop.clone().into();
        for (name, value) in options.as_object().into_iter().flatten() {
            // Options are f32; as f64, which JSON has, 0.95 would show as 0.949999988079071.
            match value.as_f64().filter(|_| value.is_f64()) {
                Some(number) => say(&format!("{name:18} {}", number as f32))?,
                None => say(&format!("{name:18} {value}"))?,
            }
        }
        let think = if self.options.think { "on" } else { "off" };
        say(&format!("{:18} {think}\n{used} of {context} tokens used", "think"))
    }
}

/// Shows a reply as it is generated, and measures how long the prompt took.
async fn show(
    reply: &mut Reply<'_>,
    writer: &mut ReplyWriter,
    clock: &mut Laps,
    prompt_time: &mut Duration,
) -> Result<(), Failure> {
    reply.read_prompt().await?;
    *prompt_time = clock.lap();
    while let Some(delta) = reply.next().await {
        writer.delta(&delta?)?;
    }
    Ok(())
}

fn say(text: &str) -> Result<(), Failure> {
    Ok(output::line(text.trim_end())?)
}

/// Shows a failure without ending the chat.
fn complain(failure: &Failure) -> Result<(), Failure> {
    say(&failure.to_string())
}
