package storage

import (
	"reflect"
	"testing"
)

// FuzzList parses lists of manifests. One that is accepted is equal after it was written, and can be changed.
func FuzzList(f *testing.F) {
	d := string(DigestOf(nil, ""))
	for _, document := range []string{
		"", "null", "{}", `{"schemaVersion":2}`, `{"schemaVersion":2,"manifests":null}`,
		`{"schemaVersion":2,"manifests":[{"digest":"sha256:1"}]}`,
		`{"schemaVersion":2,"manifests":[{"digest":"` + d +
			`","annotations":{"org.opencontainers.image.ref.name":"v1"}}],"annotations":{"org.olareg.referrer.convert":"true"}}`,
		`{"schemaVersion":2,"manifests":[{"digest":"` + d + `","annotations":{"org.olareg.referrer.subject":"` + d +
			`"},"platform":{"os":"linux"},"data":"e30="}]}`,
	} {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		l, err := parseList(document)
		if err != nil {
			return
		}
		written, err := l.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseList(written)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if twice, err := again.encode(); err != nil || string(twice) != string(written) {
			t.Fatalf("%s is %s when it is written again, %v", written, twice, err)
		}
		changed := l.clone()
		added := DigestOf([]byte("added"), "")
		changed.add(Descriptor{MediaType: ociManifest, Digest: added}, "added")
		if found, ok := changed.tagged("added"); !ok || found.Digest != added {
			t.Fatalf("the tag is %+v", found)
		}
		for tag, d := range l.tags() {
			if found := changed.tags()[tag]; tag != "added" && found != d {
				t.Fatalf("the tag %s is %s, want %s", tag, found, d)
			}
		}
		changed.untag("added")
		changed.drop(func(m Descriptor) bool { return m.is(added) })
		if again, err := parseList(document); err != nil || !reflect.DeepEqual(again, l) {
			t.Fatalf("the changes of a copy have changed the list")
		}
	})
}
