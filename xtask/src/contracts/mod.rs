//! `contracts`: compiles the Solidity sources, and writes or checks what is kept of them.
//!
//! A build of the workspace needs no Solidity compiler: it reads the artifacts, which are tracked beside the
//! sources. This verb makes them, with one compiler and one set of settings.
//!
//! # Invariants
//! - The compiler is the one whose digest is stated here, or none runs.
//! - An artifact is a function of its source and of what is stated here: it holds no path, time or metadata hash, so
//!   that a check compares bytes.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256, Sha512};

use crate::cargo::{Metadata, not_started, output};
use crate::verb::{Args, Error, Flag, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "contracts",
    doc: "compiles the contracts and writes their artifacts",
    flags: &[
        Flag {
            name: "--check",
            value: None,
            doc: "write nothing: fail where an artifact differs from what its source gives",
        },
        Flag {
            name: "--if-possible",
            value: None,
            doc: "say so and succeed where the compiler cannot be had or run",
        },
    ],
    run,
};

/// The compiler's package and its version.
const PACKAGE: &str = "solc";
const VERSION: &str = "0.8.30";

/// The package's SHA-512. The registry states the same as its integrity, in base 64.
const SHA512: &str = "f52ae4fe09ddb419a851b838084eb2a40ccf425125bfc9ed6e797a4a2814040c\
                      e05ca9f7e6ff3bb23d38b997a86568ed0e47734f4a8a15c228ff097add433177";

/// The compiler itself, in the package.
const COMPILER: &str = "package/soljson.js";

/// What runs it.
const SCRIPT: &str = include_str!("compile.js");

/// Where sources are.
const FOLDERS: &[&str] = &["contracts", "contracts/testing"];

/// How sources are compiled. Every chain since Cancun runs the result. The end of the bytecode names no source, so
/// that a comment's change leaves the bytecode as it is.
fn settings() -> Value {
    json!({
        "evmVersion": "cancun",
        "metadata": { "appendCBOR": false, "bytecodeHash": "none" },
        "optimizer": { "enabled": true, "runs": 10_000 },
    })
}

/// A source.
struct Source {
    path: PathBuf,
    /// The file's name without its ending, which is the contract's.
    contract: String,
    text: String,
}

impl Source {
    /// Every one, in order.
    fn all() -> Result<Vec<Self>, Error> {
        let mut sources = Vec::new();
        for folder in FOLDERS.iter().map(Path::new).filter(|path| path.exists()) {
            let unreadable = |source| Error::io("list", folder, source);
            for entry in fs::read_dir(folder).map_err(unreadable)? {
                let path = entry.map_err(unreadable)?.path();
                if path.extension().is_some_and(|ending| ending == "sol") {
                    let text = fs::read_to_string(&path);
                    let text = text.map_err(|source| Error::io("read", &path, source))?;
                    let contract = path.file_stem().unwrap_or_default();
                    let contract = contract.to_string_lossy().into_owned();
                    sources.push(Self {
                        path,
                        contract,
                        text,
                    });
                }
            }
        }
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(sources)
    }

    fn sha256(&self) -> String {
        hex(&Sha256::digest(self.text.as_bytes()))
    }

    fn artifact(&self) -> PathBuf {
        self.path.with_extension("json")
    }

    /// What is kept of `output`, the compiler's.
    fn kept(&self, output: &Value) -> Result<String, Error> {
        let path = self.path.display().to_string();
        let contract = &output["contracts"][&path][&self.contract];
        let (code, deployed) = (
            &contract["evm"]["bytecode"],
            &contract["evm"]["deployedBytecode"],
        );
        let (Some(creation), Some(runtime)) =
            (code["object"].as_str(), deployed["object"].as_str())
        else {
            let name = &self.contract;
            return Err(Error::Failed(format!(
                "{path}: no contract `{name}` in it: a file's contract has its name"
            )));
        };
        let kept = json!({
            "contract": self.contract,
            "sourceSha256": self.sha256(),
            "compiler": format!("{PACKAGE} {VERSION}"),
            "settings": settings(),
            "abi": contract["abi"],
            "bytecode": format!("0x{creation}"),
            "runtimeBytecode": format!("0x{runtime}"),
            "immutableReferences": deployed["immutableReferences"],
        });
        let command = "contracts".to_owned();
        let text = serde_json::to_string_pretty(&sorted(kept))
            .map_err(|source| Error::Json { command, source })?;
        Ok(text + "\n")
    }
}

fn run(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let lacking = ["npm", "node"].into_iter().find(|name| missing(name));
    if let Some(name) = lacking {
        let reason = format!("contracts: `{name}` is not on the path");
        if args.has("--if-possible") {
            writeln!(out, "{reason}: skipped")?;
            return Ok(());
        }
        return Err(Error::Failed(reason));
    }
    let folder = PathBuf::from(Metadata::load()?.target_directory).join("contracts");
    let compiler = match compiler(&folder) {
        Err(error @ Error::Command { .. }) if args.has("--if-possible") => {
            writeln!(
                out,
                "contracts: {PACKAGE} could not be had: {error}: skipped"
            )?;
            return Ok(());
        }
        compiler => compiler?,
    };
    let sources = Source::all()?;
    let said = compile(&compiler, &sources)?;
    let mut stale = Vec::new();
    for source in &sources {
        let (path, wanted) = (source.artifact(), source.kept(&said)?);
        let there = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            read => Some(read.map_err(|source| Error::io("read", &path, source))?),
        };
        if there.as_ref() == Some(&wanted) {
            continue;
        }
        if args.has("--check") {
            stale.push(path.display().to_string());
            continue;
        }
        fs::write(&path, wanted).map_err(|source| Error::io("write", &path, source))?;
        writeln!(out, "{} written", path.display())?;
    }
    if !stale.is_empty() {
        return Err(Error::Failed(format!(
            "contracts: not what the sources give: {}: run `cargo xtask contracts`",
            stale.join(", ")
        )));
    }
    let n = sources.len();
    writeln!(
        out,
        "contracts: {n} artifacts are what {PACKAGE} {VERSION} makes of their sources"
    )?;
    Ok(())
}

/// Whether the program cannot be started.
fn missing(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_err()
}

/// The compiler's file below `folder`, downloaded unless it is there.
fn compiler(folder: &Path) -> Result<PathBuf, Error> {
    // What is there was checked when it was written, and has a name of its version.
    let path = folder.join(format!("{PACKAGE}-{VERSION}.js"));
    if path.exists() {
        return Ok(path);
    }
    fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
    let mut pack = Command::new("npm");
    pack.args(["pack", "--silent", "--pack-destination"]);
    output(pack.arg(folder).arg(format!("{PACKAGE}@{VERSION}")))?;
    let archive = folder.join(format!("{PACKAGE}-{VERSION}.tgz"));
    let bytes = fs::read(&archive).map_err(|source| Error::io("read", &archive, source))?;
    let text = unpacked(&bytes)?;
    let partial = folder.join("partial.js");
    fs::write(&partial, text).map_err(|source| Error::io("write", &partial, source))?;
    fs::rename(&partial, &path).map_err(|source| Error::io("name", &path, source))?;
    fs::remove_file(&archive).map_err(|source| Error::io("remove", &archive, source))?;
    Ok(path)
}

/// The compiler in the package's archive, if the archive is the one that is meant.
fn unpacked(archive: &[u8]) -> Result<Vec<u8>, Error> {
    let digest = hex(&Sha512::digest(archive));
    if digest != SHA512 {
        return Err(Error::Failed(format!(
            "contracts: {PACKAGE} {VERSION} has the SHA-512 {digest}, not {SHA512}: it is not run"
        )));
    }
    let name = format!("{PACKAGE}-{VERSION}.tgz");
    let unreadable = |source| Error::io("unpack", &name, source);
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    for entry in archive.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        if entry.path().map_err(unreadable)? == Path::new(COMPILER) {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(unreadable)?;
            return Ok(bytes);
        }
    }
    Err(Error::Failed(format!(
        "contracts: {name} has no {COMPILER}"
    )))
}

/// What the compiler says of `sources`, where it has no complaint.
fn compile(compiler: &Path, sources: &[Source]) -> Result<Value, Error> {
    let mut settings = settings();
    settings["outputSelection"] = json!({ "*": { "*": [
        "abi",
        "evm.bytecode.object",
        "evm.deployedBytecode.object",
        "evm.deployedBytecode.immutableReferences",
    ] } });
    let mut named = json!({});
    for source in sources {
        named[source.path.display().to_string()] = json!({ "content": source.text });
    }
    let input = json!({ "language": "Solidity", "sources": named, "settings": settings });

    let mut node = Command::new("node");
    node.args(["--eval", SCRIPT, "--"]).arg(compiler);
    node.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = node.spawn().map_err(|source| not_started(&node, &source))?;
    if let Some(mut stdin) = child.stdin.take() {
        // The script reads all of it before it writes anything.
        stdin.write_all(input.to_string().as_bytes())?;
    }
    let done = child.wait_with_output()?;
    let command = "node compile.js".to_owned();
    if !done.status.success() {
        let what = done.status.to_string();
        return Err(Error::Command { command, what });
    }
    let said: Value =
        serde_json::from_slice(&done.stdout).map_err(|source| Error::Json { command, source })?;
    let complaints = said["errors"].as_array().map_or(&[][..], Vec::as_slice);
    if complaints.is_empty() {
        return Ok(said);
    }
    let texts = complaints
        .iter()
        .filter_map(|one| one["formattedMessage"].as_str());
    let text = texts.collect::<Vec<_>>().join("\n");
    Err(Error::Failed(format!("contracts: {text}")))
}

/// The same with the members of each object in the order of their names, whether or not the map that this build has
/// keeps them so.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members.into_iter().collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            let sorted = members
                .into_iter()
                .map(|(name, value)| (name, sorted(value)));
            Value::Object(sorted.collect())
        }
        Value::Array(elements) => Value::Array(elements.into_iter().map(sorted).collect()),
        other => other,
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16));
    bytes.iter().flat_map(digits).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_workspace() -> Vec<Source> {
        crate::enter_workspace().unwrap();
        Source::all().unwrap()
    }

    #[test]
    fn every_artifact_was_made_from_its_source_as_it_is() {
        let sources = in_workspace();
        assert!(
            sources.iter().any(|source| source.contract == "Executor"),
            "no executor"
        );
        for source in sources {
            let text = fs::read_to_string(source.artifact()).unwrap();
            let artifact: Value = serde_json::from_str(&text).unwrap();
            let path = source.path.display();
            assert_eq!(artifact["sourceSha256"], source.sha256(), "{path}");
            assert_eq!(artifact["settings"], settings(), "{path}");
            assert_eq!(
                artifact["compiler"],
                format!("{PACKAGE} {VERSION}"),
                "{path}"
            );
        }
    }

    #[test]
    fn another_archive_is_not_run() {
        let error = unpacked(b"something else").unwrap_err().to_string();
        assert!(
            error.contains("SHA-512") && error.contains("not run"),
            "{error}"
        );
    }

    #[test]
    fn a_file_whose_contract_has_another_name_is_refused() {
        let source = Source {
            path: "contracts/A.sol".into(),
            contract: "A".to_owned(),
            text: String::new(),
        };
        let output = json!({ "contracts": { "contracts/A.sol": { "B": {} } } });
        let error = source.kept(&output).unwrap_err().to_string();
        assert!(error.contains("`A`"), "{error}");
    }
}
