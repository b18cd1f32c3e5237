package yamldoc

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// readStream returns all documents of a stream that is read in parts of a size.
func readStream(r *Reader, in io.Reader, part int) ([]Document, error) {
	s := r.Stream(in)
	s.part = part
	var docs []Document
	for {
		next, err := s.Next()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		docs = append(docs, next...)
	}
}

// sameAsSplit fails unless a stream in parts has the documents and the fault of the whole stream.
func sameAsSplit(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, r *Reader, text []byte, part int) {
	t.Helper()
	want, fault := r.Split(text)
	got, err := readStream(r, iotest.HalfReader(bytes.NewReader(text)), part)
	var f *Fault
	if err != nil && !errors.As(err, &f) {
		t.Fatalf("parts of %d bytes: %v", part, err)
	}
	if fault != nil && fault.Code.Name == ErrStreamTooLarge.Name {
		if f == nil {
			t.Fatalf("parts of %d bytes of %q: no fault, want %v", part, text, fault)
		}
		return // A fault of a part before the limit comes first.
	}
	if (f == nil) != (fault == nil) ||
		f != nil && (f.Code.Name != fault.Code.Name || f.Line != fault.Line || f.What != fault.What) {
		t.Fatalf("parts of %d bytes of %q: fault %v, want %v", part, text, f, fault)
	}
	if !slices.EqualFunc(got, want, func(a, b Document) bool { return a.Line == b.Line && bytes.Equal(a.Raw, b.Raw) }) {
		t.Fatalf("parts of %d bytes of %q: %v, want %v", part, text, got, want)
	}
}

func TestStreamHasTheDocumentsOfSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := []string{
			"---\n", "--- # comment\n", "--- a: b\n", "---", "----\n", "---x\n", "...\n", "... text\n", "# comment\n", "\n",
			"a: b\n", " ---\n", "%YAML 1.2\n",
			"text without end", "\r\n", "---\r\n", "\xef\xbb\xbf", "\xff\xfe", "-", "a: |\n  ---\n",
		}
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(t, "pieces"), "")
		limits := Limits{
			Documents:     rapid.IntRange(1, 30).Draw(t, "documents"),
			DocumentBytes: rapid.IntRange(1, 60).Draw(t, "document bytes"),
			StreamBytes:   rapid.IntRange(1, 400).Draw(t, "stream bytes"),
		}
		sameAsSplit(t, NewReader(limits), []byte(text), rapid.IntRange(1, 50).Draw(t, "part"))
	})
}

// The parts of a real stream are bounded by the size of a part and the longest document.
func TestStreamHoldsAPart(t *testing.T) {
	const part = 1 << 16
	document := "a: " + strings.Repeat("x", 1000) + "\n"
	in := strings.NewReader(strings.Repeat("---\n"+document, 1000))
	s := NewReader(Limits{}).Stream(in)
	s.part = part
	total := 0
	for {
		docs, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := len(docs) * len(document); n > part {
			t.Fatalf("a part of %d bytes, want at most %d", n, part)
		}
		total += len(docs)
	}
	if total != 1000 {
		t.Errorf("%d documents, want 1000", total)
	}
}

func TestStreamReturnsTheErrorOfItsReader(t *testing.T) {
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader("a: b\n---\nc: d\n"), iotest.ErrReader(broken))
	if docs, err := readStream(NewReader(Limits{}), in, 4); !errors.Is(err, broken) {
		t.Errorf("%d documents, %v", len(docs), err)
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte("a: b\n---\nc: d\n"), uint8(4))
	f.Add([]byte("\xef\xbb\xbf# x\n--- d\n...\n---"), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, part uint8) {
		sameAsSplit(t, NewReader(Limits{}), text, 1+int(part))
	})
}
