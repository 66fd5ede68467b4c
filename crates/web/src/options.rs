//! Options from JSON.

use rullama_chat::{Message, Think, Tool, parse_messages, parse_tools};
use rullama_engine::{CacheFormat, ChatOptions, Entropy, GenerateOptions, LoadOptions, OptionRange};
#[cfg(feature = "gpu")]
use rullama_gpu::{GpuOptions, Residency};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    error::{Failure, failure, plain},
    host,
};

/// The format of keys and values if the options name none: it is read fastest, without visible loss.
const DEFAULT_KV: CacheFormat = CacheFormat::F16;

/// Bytes of weights that are held in memory if the options name no limit. Wasm's memory has four gibibytes.
#[cfg(not(feature = "gpu"))]
const MOST_WEIGHTS: u64 = 2 << 30;

/// The context if the options name none, as on a GPU.
#[cfg(not(feature = "gpu"))]
const DEFAULT_CONTEXT: u32 = 4096;

/// The options of a load. Those that concern a GPU have no effect on the CPU.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LoadRequest {
    context: Option<u32>,
    /// The format of keys and values.
    kv: Option<String>,
    /// The maximum bytes of GPU memory; on the CPU, of weights that are held in memory.
    memory: Option<u64>,
    residency: Option<String>,
    /// The maximum number of prompt tokens in one step.
    rows: Option<u32>,
    floor: Option<bool>,
    subgroups: Option<bool>,
    self_test: Option<bool>,
    /// Whether a GPU that is lost twice within a minute is given up: the caller then goes on on the CPU.
    give_up: Option<bool>,
    /// Whether the weights of towers stay in memory after use.
    keep_towers: Option<bool>,
}

impl LoadRequest {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let given = object(text)?;
        // First, because these errors name the option and its range.
        for (option, range) in
            [("context", OptionRange::CONTEXT), ("memory", OptionRange::MEMORY), ("rows", OptionRange::ROWS)]
        {
            if let Some(value) = given.get(option).filter(|value| !value.is_null()) {
                range.check_json(option, value).map_err(failure)?;
            }
        }
        serde_json::from_value(given.into()).map_err(|error| plain("option.wrong_type", &error.to_string()))
    }

    pub(crate) fn memory(&self) -> Option<u64> {
        self.memory
    }

    pub(crate) fn load(&self) -> Result<LoadOptions, Failure> {
        let kv = self.kv.as_deref().map_or(Ok(DEFAULT_KV), str::parse);
        let kv = kv.map_err(|error| plain("option.wrong_type", &error.to_string()))?;
        let mut options = LoadOptions::default().kv(kv).entropy(Entropy::new(host::entropy));
        options.context = self.context;
        options.keep_towers = self.keep_towers != Some(false);
        #[cfg(feature = "gpu")]
        {
            options.gpu_memory = self.memory;
            options.rows = self.rows;
            let residency = self.residency.as_deref().map(str::parse::<Residency>).transpose();
            options.residency = residency.map_err(|error| plain("option.wrong_type", &error.to_string()))?;
        }
        #[cfg(not(feature = "gpu"))]
        {
            options.weight_memory = self.weight_memory();
            options.default_context = Some(DEFAULT_CONTEXT);
        }
        Ok(options)
    }

    /// Bytes of weights that are held in memory.
    #[cfg(not(feature = "gpu"))]
    pub(crate) fn weight_memory(&self) -> u64 {
        self.memory.unwrap_or(MOST_WEIGHTS)
    }

    #[cfg(feature = "gpu")]
    pub(crate) fn gives_up(&self) -> bool {
        self.give_up == Some(true)
    }

    #[cfg(feature = "gpu")]
    pub(crate) fn gpu(&self) -> GpuOptions {
        let mut options = GpuOptions::default();
        if self.floor == Some(true) {
            options = options.floor();
        }
        if self.subgroups == Some(false) {
            options = options.without_subgroups();
        }
        if self.self_test == Some(false) {
            options = options.without_self_test();
        }
        options
    }
}

/// Options of a reply, and the tokens of it that another engine has generated.
pub(crate) struct Asked<Options> {
    pub(crate) options: Options,
    pub(crate) begun: Vec<u32>,
}

/// The options of a reply without a chat template.
pub(crate) fn generate_options(text: &str) -> Result<Asked<GenerateOptions>, Failure> {
    let mut options = object(text)?;
    let begun = begun(&mut options)?;
    Ok(Asked { options: generate_from(options)?, begun })
}

/// The options of a reply to a conversation: those of generation, `think` and `tools`.
pub(crate) fn reply_options(text: &str) -> Result<Asked<ChatOptions>, Failure> {
    let mut options = object(text)?;
    let begun = begun(&mut options)?;
    Ok(Asked { options: chat_from(options)?, begun })
}

/// The options of a prompt, which are those of the reply to it.
pub(crate) fn chat_options(text: &str) -> Result<ChatOptions, Failure> {
    chat_from(object(text)?)
}

fn begun(options: &mut Map<String, Value>) -> Result<Vec<u32>, Failure> {
    let ids = options.remove("begun").map_or_else(|| Ok(Vec::new()), serde_json::from_value);
    ids.map_err(|error| plain("option.wrong_type", &error.to_string()))
}

fn chat_from(mut options: Map<String, Value>) -> Result<ChatOptions, Failure> {
    let think = options.remove("think").unwrap_or_default();
    let tools = tools(options.remove("tools"))?;
    let think = Think::from_value(&think).map_err(failure)?.is_on();
    Ok(ChatOptions { generate: generate_from(options)?, think, tools, ..ChatOptions::default() })
}

fn tools(value: Option<Value>) -> Result<Vec<Tool>, Failure> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        // Parsed from text again, because errors then name the place.
        Some(tools) => parse_tools(&tools.to_string()).map_err(failure),
    }
}

pub(crate) fn messages(text: &str) -> Result<Vec<Message>, Failure> {
    parse_messages(text).map_err(failure)
}

fn generate_from(options: Map<String, Value>) -> Result<GenerateOptions, Failure> {
    GenerateOptions::try_from(options).map_err(failure)
}

fn object(text: &str) -> Result<Map<String, Value>, Failure> {
    serde_json::from_str(text).map_err(|error| plain("option.wrong_type", &error.to_string()))
}
