package xpkg

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// texts is a Texts in memory.
type texts struct{ bytes.Buffer }

func (t *texts) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(t.Bytes()).ReadAt(p, off)
}

// sameAsRead fails unless ReadFrom returns the package and the codes of the findings of Read.
func sameAsRead(t *testing.T, stream []byte, opts ReadOptions) {
	t.Helper()
	want, wantErr := Read(stream, opts)
	kept := &texts{}
	got, err := ReadFrom(iotest.HalfReader(bytes.NewReader(stream)), kept, opts)
	if wantErr != nil || err != nil {
		a, b := codesOf(Findings(err)), codesOf(Findings(wantErr))
		if !slices.Equal(a, b) {
			t.Fatalf("%q: %v, want %v", stream, err, wantErr)
		}
		return
	}
	if a, b := codesOf(got.Findings), codesOf(want.Findings); !slices.Equal(a, b) {
		t.Fatalf("%q: the findings %v, want %v", stream, a, b)
	}
	if got.Meta.Name != want.Meta.Name || got.Meta.Kind != want.Meta.Kind ||
		!bytes.Equal(got.Meta.Raw.Raw, want.Meta.Raw.Raw) {
		t.Fatalf("%q: the metadata %+v, want %+v", stream, got.Meta, want.Meta)
	}
	var all []byte
	same := slices.EqualFunc(got.Objects, want.Objects, func(a, b Object) bool {
		x, xerr := a.JSON()
		y, yerr := b.JSON()
		all = append(all, x...)
		return a.GVK == b.GVK && a.Name == b.Name && a.File == b.File && a.Line == b.Line && a.Index == b.Index &&
			bytes.Equal(x, y) && xerr == nil && yerr == nil
	})
	if !same {
		t.Fatalf("%q: the objects %v, want %v", stream, got.Objects, want.Objects)
	}
	if len(want.Findings) == 0 && !bytes.Equal(all, kept.Bytes()) {
		t.Fatalf("%q: the texts %s, want %s", stream, kept, all)
	}
}

func codesOf(findings []Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Code.Name)
	}
	slices.Sort(out)
	return out
}

func TestReadFromReturnsThePackageOfRead(t *testing.T) {
	crd := func(name string) string {
		return "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + "}\n"
	}
	var parts strings.Builder
	for i := range 100 {
		parts.WriteString(crd(fmt.Sprintf("a%d.b", i)) + strings.Repeat("# a comment\n", 10_000))
	}
	const hook = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: AdmissionWebhookConfiguration\nmetadata: {name: hook}\n"
	for name, stream := range map[string]string{
		"objects":                    providerMeta + crd("a.b") + crd("c.d"),
		"parts":                      parts.String() + "---\n" + providerMeta + crd("c.d"),
		"metadata last":              crd("a.b") + "---\n" + providerMeta,
		"comments and empty":         "# comment\n---\n" + providerMeta + "---\n# nothing\n" + crd("a.b") + "...\n",
		"no metadata":                crd("a.b"),
		"two metadata":               providerMeta + "---\n" + providerMeta,
		"empty":                      "",
		"an object twice":            providerMeta + crd("a.b") + crd("a.b"),
		"a kind that is not allowed": providerMeta + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: x}\n" + crd("a.b"),
		"another name of a kind":     providerMeta + hook + crd("a.b"),
		"text on a separator": providerMeta +
			"--- {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}}\n",
		"invalid YAML":    providerMeta + "---\na: [\n" + crd("a.b"),
		"no object":       providerMeta + "---\njust text\n",
		"an invalid name": providerMeta + crd("A_B"),
		"a directive":     "%YAML 1.2\n---\n" + providerMeta,
		"UTF-16":          "\xff\xfe" + providerMeta,
	} {
		t.Run(name, func(t *testing.T) {
			sameAsRead(t, []byte(stream), ReadOptions{})
			sameAsRead(t, []byte(stream), ReadOptions{Limits: Limits{StreamBytes: 100, ObjectBytes: 50}})
			sameAsRead(t, []byte(stream), ReadOptions{Limits: Limits{ObjectBytes: 50, Documents: 2}})
		})
	}
}

func TestReadFromReturnsErrorsOfItsReaderAndItsTexts(t *testing.T) {
	broken := errors.New("broken")
	stream := providerMeta +
		"---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\n"
	if _, err := ReadFrom(
		io.MultiReader(strings.NewReader(stream), iotest.ErrReader(broken)), &texts{}, ReadOptions{},
	); !errors.Is(err, broken) {
		t.Errorf("with a broken reader: %v", err)
	}
	if _, err := ReadFrom(strings.NewReader(stream), brokenTexts{broken}, ReadOptions{}); !errors.Is(err, broken) {
		t.Errorf("with broken texts: %v", err)
	}
}

// brokenTexts fails every write.
type brokenTexts struct{ err error }

func (b brokenTexts) Write([]byte) (int, error)         { return 0, b.err }
func (b brokenTexts) ReadAt([]byte, int64) (int, error) { return 0, b.err }

func FuzzReadFrom(f *testing.F) {
	f.Add([]byte(providerMeta + "---\nkind: K\napiVersion: v1\n---\nkind: L\napiVersion: v1\nmetadata: {name: x}\n"))
	f.Add([]byte("a: b\n---\n" + providerMeta + "...\n%\n--- x\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		sameAsRead(t, stream, ReadOptions{Limits: Limits{StreamBytes: 1 << 16, Depth: 50, Nodes: 1000, AliasNodes: 1000}})
	})
}
