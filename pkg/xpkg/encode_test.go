package xpkg_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/race"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Every character of an object survives in its document, and the document is one that a package may contain.
func TestEncodeDocumentKeepsEveryCharacter(t *testing.T) {
	race.SkipSequential(t)
	for r := rune(1); r < 0x11000; r++ {
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		text := "x" + string(r) + "y"
		raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Boat", "spec": text})
		if err != nil {
			t.Fatal(err)
		}
		var unescaped bytes.Buffer
		enc := json.NewEncoder(&unescaped)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(map[string]any{"apiVersion": "v1", "kind": "Boat", "spec": text}); err != nil {
			t.Fatal(err)
		}
		for _, object := range [][]byte{
			raw, unescaped.Bytes(),
			bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte(`\u2028`), []byte("\u2028")), []byte(`\u2029`), []byte("\u2029")),
		} {
			document, err := xpkg.EncodeDocument(object)
			if err != nil {
				t.Fatalf("%U: %v", r, err)
			}
			documents, err := xpkg.Split(document, "boat.yaml", xpkg.Limits{})
			if err != nil || len(documents) != 1 {
				t.Fatalf("%U: %d documents, %v in %q", r, len(documents), err, document)
			}
			got, err := documents[0].JSON()
			var back struct{ Spec string }
			if err != nil || json.Unmarshal(got, &back) != nil || back.Spec != text {
				t.Fatalf("%U: %q, %v; want %q", r, back.Spec, err, text)
			}
		}
	}
}
