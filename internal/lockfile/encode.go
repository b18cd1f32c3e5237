package lockfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// The type of a lock file. Another version of it is another format.
const (
	APIVersion = "xpkg.dev/v1alpha1"
	Kind       = "PackageLock"
)

const head = `# Written by xpkg resolve. It belongs into version control; xpkg install --lock installs it.
apiVersion: ` + APIVersion + `
kind: ` + Kind + `
`

// Encode writes a lock file. Equal files are equal bytes, in whatever order their
// parts are.
func Encode(f File) []byte {
	f.Roots, f.Packages = slices.Clone(f.Roots), clonePackages(f.Packages)
	f.sort()
	w := &writer{}
	w.WriteString(head)
	w.list("roots", len(f.Roots))
	for _, r := range f.Roots {
		w.item("- package", r.Package)
		w.item("  constraint", r.Constraint)
		w.yes("  exact", r.Exact)
		w.yes("  optional", r.Optional)
		w.some("  by", r.By)
	}
	w.list("packages", len(f.Packages))
	for _, p := range f.Packages {
		w.item("- package", p.Package)
		w.some("  version", p.Version)
		w.item("  digest", p.Digest.String())
		w.item("  kind", string(p.Kind))
		if len(p.Dependencies) > 0 {
			w.WriteString("  dependencies:\n")
		}
		for _, d := range p.Dependencies {
			w.item("  - package", d.Package)
			w.item("    constraint", d.Constraint)
			w.yes("    optional", d.Optional)
		}
	}
	return w.Bytes()
}

func clonePackages(all []Package) []Package {
	out := slices.Clone(all)
	for i := range out {
		out[i].Dependencies = slices.Clone(out[i].Dependencies)
	}
	return out
}

// writer writes YAML. It is not left to a library, so that another version of one
// never changes the file of anybody.
type writer struct{ bytes.Buffer }

func (w *writer) list(name string, length int) {
	if length == 0 {
		name += ": []"
	} else {
		name += ":"
	}
	fmt.Fprintln(w, name)
}

func (w *writer) some(key, value string) {
	if value != "" {
		w.item(key, value)
	}
}

func (w *writer) yes(key string, is bool) {
	if is {
		fmt.Fprintf(w, "%s: true\n", key)
	}
}

// item writes a text. One that could be read as something else, such as the version
// 1.10, is quoted as JSON quotes it, which is YAML too.
func (w *writer) item(key, value string) {
	if !isPlain(value) {
		var quoted bytes.Buffer
		enc := json.NewEncoder(&quoted)
		enc.SetEscapeHTML(false) // constraints are full of ">"
		_ = enc.Encode(value)    // a string can always be written
		value = string(bytes.TrimSpace(quoted.Bytes()))
	}
	fmt.Fprintf(w, "%s: %s\n", key, value)
}

// isPlain reports whether YAML reads a text as itself: it starts with a letter and
// holds a character that no word with a meaning of its own has, such as "true" or
// "null"; or it is one of the kinds of packages.
func isPlain(s string) bool {
	meaning := true
	for i, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
		case i == 0:
			return false
		case r >= '0' && r <= '9', r == '/', r == '-':
			meaning = false
		case r == '.', r == '_':
		case r == ':' && i+1 < len(s):
		default:
			return false
		}
	}
	return s != "" && (!meaning || len(s) > len("false"))
}
