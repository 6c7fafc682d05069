// Runs the compiler in the file named first on the standard JSON input from stdin; nothing is fetched or written.
const compiler = require(process.argv[process.argv.length - 1]);
const compile = compiler.cwrap("solidity_compile", "string", ["string", "number", "number"]);
process.stdout.write(compile(require("fs").readFileSync(0, "utf8"), 0, 0));
