package lockfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// API version and kind of a lock file. The version identifies the format.
const (
	APIVersion = "xpkg.dev/v1alpha1"
	Kind       = "PackageLock"
)

const head = `# Written by xpkg resolve. It belongs into version control; xpkg install --lock installs it.
apiVersion: ` + APIVersion + `
kind: ` + Kind + `
`

// Encode writes a lock file. Equal files have equal bytes, regardless of the order of their parts.
func Encode(f File) []byte {
	f.Roots, f.Packages = slices.Clone(f.Roots), clonePackages(f.Packages)
	f.sort()
	w := &writer{}
	w.WriteString(head)
	w.list("roots", len(f.Roots))
	for _, r := range f.Roots {
		w.field("- package", r.Package)
		w.field("  constraint", r.Constraint)
		w.flag("  exact", r.Exact)
		w.flag("  optional", r.Optional)
		w.optionalField("  by", r.By)
		w.optionalField("  crd", r.CRD)
	}
	w.list("packages", len(f.Packages))
	for _, p := range f.Packages {
		w.field("- package", p.Repository)
		w.optionalField("  version", p.Version)
		w.field("  digest", p.Digest.String())
		w.field("  kind", string(p.Kind))
		if len(p.Provides) > 0 {
			w.WriteString("  provides:\n")
		}
		for _, k := range p.Provides {
			w.item("  - ", k.String())
		}
		if len(p.Signers) > 0 {
			w.WriteString("  signers:\n")
		}
		for _, s := range p.Signers {
			w.item("  - ", s)
		}
		if len(p.Dependencies) > 0 {
			w.WriteString("  dependencies:\n")
		}
		for _, d := range p.Dependencies {
			w.field("  - package", d.Package)
			w.field("    constraint", d.Constraint)
			w.flag("    optional", d.Optional)
			w.optionalField("    crd", d.CRD)
		}
	}
	return w.Bytes()
}

func clonePackages(all []Package) []Package {
	out := slices.Clone(all)
	for i := range out {
		out[i].Dependencies, out[i].Provides = slices.Clone(out[i].Dependencies), slices.Clone(out[i].Provides)
		out[i].Signers = slices.Clone(out[i].Signers)
	}
	return out
}

// writer writes YAML. It uses no library, because a new version of a library could change existing
// files.
type writer struct{ bytes.Buffer }

func (w *writer) list(name string, length int) {
	if length == 0 {
		name += ": []"
	} else {
		name += ":"
	}
	fmt.Fprintln(w, name)
}

func (w *writer) optionalField(key, value string) {
	if value != "" {
		w.field(key, value)
	}
}

func (w *writer) flag(key string, is bool) {
	if is {
		fmt.Fprintf(w, "%s: true\n", key)
	}
}

// field writes a field with a text. A text that YAML would not read as a string, such as the version
// 1.10, is quoted as in JSON.
func (w *writer) field(key, value string) { w.item(key+": ", value) }

// item writes a text after the given characters.
func (w *writer) item(before, value string) {
	if !isPlain(value) {
		var quoted bytes.Buffer
		enc := json.NewEncoder(&quoted)
		enc.SetEscapeHTML(false) // constraints are full of ">"
		_ = enc.Encode(value)    // a string can always be written
		value = string(bytes.TrimSpace(quoted.Bytes()))
	}
	fmt.Fprintf(w, "%s%s\n", before, value)
}

// isPlain reports whether YAML reads an unquoted text as the same string: it starts with a letter and
// contains a character that is not in words such as "true" and "null", or it is a kind of package.
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
