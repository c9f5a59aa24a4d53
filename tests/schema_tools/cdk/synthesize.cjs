// Synthesizes the stack of each compiled module of a folder, into a template beside it.
const fs = require("node:fs");
const path = require("node:path");
const { App } = require("aws-cdk-lib");
const { Template } = require("aws-cdk-lib/assertions");

const folder = process.argv[2];
for (const name of fs.readdirSync(folder).filter((each) => each.endsWith(".js"))) {
  const { TablesStack } = require(path.join(folder, name));
  const template = Template.fromStack(new TablesStack(new App(), "TablesStack")).toJSON();
  fs.writeFileSync(path.join(folder, name.replace(/js$/, "json")), JSON.stringify(template));
}
