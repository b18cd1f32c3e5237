package dockerconfig

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func load(t *testing.T, text string) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func saved(t *testing.T, f *File) string {
	t.Helper()
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestSet(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"Nothing": {"", "{\n\t\"auths\": {\n\t\t\"a.test\": {\n\t\t\t\"auth\": \"dTpw\"\n\t\t}\n\t}\n}\n"},
		"Null":    {`{"auths": null}`, "{\n\t\"auths\": {\n\t\t\"a.test\": {\n\t\t\t\"auth\": \"dTpw\"\n\t\t}\n\t}\n}\n"},
		"Replaced": {
			`{"auths":{"a.test":{"auth":"old","email":"x"},"b.test":{}},"z":1}`,
			"{\n\t\"auths\": {\n\t\t\"a.test\": {\n\t\t\t\"auth\": \"dTpw\"\n\t\t},\n\t\t\"b.test\": {}\n\t},\n\t\"z\": 1\n}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := load(t, c.before)
			if err := f.Set("a.test", "u", "p"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.after, saved(t, f)); diff != "" {
				t.Error(diff)
			}
			info, err := os.Stat(f.Path())
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the file has mode %v (%v)", info.Mode(), err)
			}
		})
	}
}

func TestRemoveEverySpelling(t *testing.T) {
	f := load(t, `{"auths":{"https://a.test/v2/":{},"a.test":{},"http://a.test":{},"a.test.other":{},"a.test:5000":{}}}`)
	found, err := f.Remove("a.test")
	if err != nil || !found {
		t.Fatalf("%v %v", found, err)
	}
	var got struct{ Auths map[string]any }
	if err := json.Unmarshal([]byte(saved(t, f)), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a.test.other": map[string]any{}, "a.test:5000": map[string]any{}}
	if diff := cmp.Diff(want, got.Auths); diff != "" {
		t.Error(diff)
	}
	if found, err := f.Remove("a.test"); err != nil || found {
		t.Errorf("%v %v", found, err)
	}
	f = load(t, `{"auths":{"https://index.docker.io/v1/":{},"docker.io":{}}}`)
	if _, err := f.Remove(DockerHub); err != nil {
		t.Fatal(err)
	}
	if got := saved(t, f); got != "{\n\t\"auths\": {}\n}\n" {
		t.Errorf("left %s", got)
	}
}

func TestHelper(t *testing.T) {
	f := load(t, `{"credsStore":"one","credHelpers":{"a.test":"two"}}`)
	for server, want := range map[string]string{"a.test": "two", "b.test": "one"} {
		if got, err := f.Helper(server); err != nil || got != want {
			t.Errorf("%s has the helper %q (%v), want %q", server, got, err, want)
		}
	}
}

func TestLoadDamaged(t *testing.T) {
	for _, text := range []string{"{", "[]", `"x"`, `{"auths":1`, `{} {}`} {
		path := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	f := load(t, `{"auths":[],"credsStore":7,"credHelpers":"x"}`)
	if err := f.Set("a.test", "u", "p"); err == nil {
		t.Error("auths that are a list were replaced")
	}
	if _, err := f.Remove("a.test"); err == nil {
		t.Error("auths that are a list were read")
	}
	if _, err := f.Helper("a.test"); err == nil {
		t.Error("credHelpers that are a word were read")
	}
}

func TestCredentialHelperMustBeAName(t *testing.T) {
	if err := Erase(t.Context(), "../../tmp/evil", "a.test"); err == nil {
		t.Error("a path was run")
	}
}

// Every object is written with the same meaning, order and numbers.
func FuzzObject(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":1,"b":{"c":[1,2.50,"x<y"]},"a":null}`, `{"":1e400}`, `{"é":"\ud800"}`, "{\"a\":1} ", `[]`, `{"a"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var o object
		if json.Unmarshal(text, &o) != nil {
			return
		}
		once, err := marshal(o)
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", text, err)
		}
		var again object
		if err := json.Unmarshal(once, &again); err != nil {
			t.Fatalf("%q was written as %q: %v", text, once, err)
		}
		twice, err := marshal(again)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%q became %q and then %q (%v)", text, once, twice, err)
		}
	})
}
