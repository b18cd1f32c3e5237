package yamldoc

import (
	"bytes"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"

	"sigs.k8s.io/yaml"
)

// agree proves, for one text, that the fast reader is either silent or of the
// same opinion as both general libraries.
func agree(t failer, text []byte) (claimed bool) {
	t.Helper()
	if checkEncoding(text) != nil {
		return false
	}
	limits := Limits{}.withDefaults()
	got, _, ok := fastJSON(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), &limits)
	if !ok {
		return false
	}
	want, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		t.Fatalf("fast reader gives %s for\n%s\nwhich sigs.k8s.io/yaml refuses: %v", got, text, err)
	}
	if want = canonical.Normalize(want); !bytes.Equal(got, want) {
		t.Fatalf("fast reader gives\n%s for\n%s\n(%q)\nwhich sigs.k8s.io/yaml takes for\n%s", got, text, text, want)
	}
	if general, _, err := generalJSON(text, &limits, false); err != nil {
		t.Fatalf("fast reader gives %s for\n%s\nwhich the general reader refuses: %v", got, text, err)
	} else if !bytes.Equal(got, general) {
		t.Fatalf("fast reader gives\n%s\nand the general reader\n%s", got, general)
	}
	return true
}

// FuzzFast lets the fuzzer look for a text that the fast reader takes for
// something else than the general reader does.
func FuzzFast(f *testing.F) {
	for _, seed := range fastSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) { agree(t, text) })
}

// fastSeeds hold each construct that the fast reader knows, and near misses.
var fastSeeds = []string{
	"a: b\n", "a:\n  b: 1\n  c: [x, 'y', \"z\", {k: v, l: [1, 2]}]\n", "a:\n- b\n- c: d\n  e: f\n-\n  - g\n- - h\n  - i\n",
	"a: |\n  x\n   y\n\n  z\n\nb: >-\n  x\n  y\n\n  z\n   w\n  v\n\nc: |+\n  x\n\n\nd: |2-\n    x\n",
	"a: x\n  y\n\n  z # c\nb: 'it''s\n  x\n\n  y '\n",
	"\"a\": \"\\u00e9\\x41\\n\\\n  x \\\n   y\"\n'b' : ~\n1: 0777\nyes: no\n2.50: 1e3\n",
	"# c\n\n--- # d\na: # e\n  # f\n  b: c#d # g\n#h\n",
	"{\"a\": [1, -2.5e3, true, null], \"b\": {}, c: ,}\n", "b: 1\na: 2\nc:\n  z: 1\n  y: 2\n", "a: 1\na: 2\n",
	"a: &x b\nc: *x\n", "? a\n: b\n", "a: !!str 1\n",
	"a: b: c\n", "a: [x\n  , y\n]\n", "a: 'x'y\n", "a:\tb\n", "- a\n-b\n", "a: - b\n", "a: \"\\ud800\"\n", "<<: {a: b}\n",
	"a: 0x1F\nb: 0b11\nc: 1_000\nd: 2001-01-01\ne: .5\nf: -.inf\n",
	"a: @b\n", "a: `b`\n", "a: %b\n", "a: ? b\n", "a: :b\n", "a: b#c\n", "a: -1\nb: --- x\n", "  a: b\n  c: d\n",
	"a:\n   b\n  c\n", "a: >\n\n  x\n\n   y\n  z\n", "a: |\n\n\n", "a: >+\n  x\n",
}

// failer is the common part of a test and a property test.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}
