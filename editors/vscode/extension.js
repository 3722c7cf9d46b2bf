// The client of `formal-llm lsp`: it starts the server and hands it the texts of rules.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function activate() {
  const settings = vscode.workspace.getConfiguration("formal-llm");
  const [command, ...args] = settings.get("command");
  const languages = ["formal-llm-grammar", "formal-llm-automaton", "formal-llm-behaviour", "formal-llm-guard",
    "formal-llm-procedure"];
  const documentSelector = languages.map((language) => ({ language }));
  if (settings.get("charts")) documentSelector.push({ scheme: "file", pattern: "**/*.{mmd,mermaid}" });
  client = new LanguageClient("formal-llm", "formal_llm", { command, args }, { documentSelector });
  try {
    await client.start();
  } catch (error) {
    const how = 'Install it with: pip install "formal-llm[lsp]", or set formal-llm.command.';
    vscode.window.showErrorMessage(`${command} could not be started (${error.message}). ${how}`);
  }
}

function deactivate() {
  return client ? client.stop() : undefined;
}

module.exports = { activate, deactivate };
