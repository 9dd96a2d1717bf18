// What the compiler leaves to do in dist/.
//
// Of the declarations, only those stay that a program can reach: from the entries of package.json,
// import by import. The others would be a fifteenth of the package.
//
// The scripts have no comments. One was for Vite, whose development server warns of modules that
// are imported by a name it cannot see.
import fs from 'node:fs';
import path from 'node:path';

const entries = Object.values(JSON.parse(fs.readFileSync('package.json', 'utf8')).exports);
const files = fs.readdirSync('dist', { recursive: true }).map((name) => path.join('dist', name));
const reached = new Set();

function reach(file) {
  if (reached.has(file)) return;
  reached.add(file);
  const text = fs.readFileSync(file, 'utf8');
  for (const [, name] of text.matchAll(/(?:from |import |import\()['"](\.[^'"]+)\.js['"]/g))
    reach(path.join(path.dirname(file), `${name}.d.ts`));
}

for (const { types } of entries) if (types) reach(path.normalize(types));
for (const file of files) if (file.endsWith('.d.ts') && !reached.has(file)) fs.rmSync(file);

for (const file of files.filter((f) => f.endsWith('.js'))) {
  const text = fs.readFileSync(file, 'utf8');
  const marked = text.replace(/\bimport\((?=\w+\))/g, 'import(/* @vite-ignore */ ');
  if (marked !== text) fs.writeFileSync(file, marked);
}
