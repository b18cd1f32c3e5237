package content

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// ImageConfigs are read from manifests and from the lists that kubectl writes.
func TestImageConfigsAreReadFromManifestsAndLists(t *testing.T) {
	config := func(name string) string {
		return `{"apiVersion":"pkg.crossplane.io/v1beta1","kind":"ImageConfig","metadata":{"name":"` + name +
			`"},"spec":{"matchImages":[{"prefix":"a.test"}]}}`
	}
	provider := `{"apiVersion":"pkg.crossplane.io/v1","kind":"Provider","metadata":{"name":"boats"},"spec":{"package":"a.test/boats:v1"}}`
	for _, tc := range []struct {
		name, text string
		want       []string
		fails      bool
	}{
		{"documents", config("a") + "\n---\n" + provider + "\n---\n---\n# nothing\n---\n" +
			config("b"), []string{"a", "b"}, false},
		{"a list of kubectl", `{"apiVersion":"v1","kind":"List","items":[` + config("a") + "," + provider + "," +
			config("b") + "]}", []string{"a", "b"}, false},
		{"a list of the API server", `{"apiVersion":"pkg.crossplane.io/v1beta1","kind":"ImageConfigList","items":[` +
			config("a") + "]}", []string{"a"}, false},
		{"an empty list", `{"apiVersion":"v1","kind":"List","items":[]}`, nil, false},
		{"an empty file", "", nil, false},
		{"other types", strings.Replace(config("a"), `"spec":{`, `"spec":{"matchImages":"a","x":{`, 1) + "}", nil, true},
		{"other types in a list", `{"apiVersion":"v1","kind":"List","items":[` +
			strings.Replace(config("a"), `[{"prefix":"a.test"}]`, `"a"`, 1) + "]}", nil, true},
		{"no object", "text", nil, true},
		{"two with one name", config("a") + "\n---\n" + config("a"), nil, true},
		{"another version", strings.Replace(config("a"), "v1beta1", "v1", 1), nil, true},
		{"a misspelt requirement", strings.Replace(config("a"), `"spec":{`, `"spec":{"verfication":{},`, 1), nil, true},
		{"another type of match", strings.Replace(config("a"), `"prefix"`, `"type":"Regex","prefix"`, 1), nil, true},
		{
			"another provider", strings.Replace(config("a"), `"spec":{`, `"spec":{"verification":{"provider":"Notary"},`, 1),
			nil, true,
		},
	} {
		file := filepath.Join(t.TempDir(), "configs.yaml")
		if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		configs, err := ReadImageConfigs(&terminal.Env{Context: t.Context()}, []string{file})
		var got []string
		for _, c := range configs.Configs {
			got = append(got, c.Name)
		}
		if (err != nil) != tc.fails || !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, %v; want %v", tc.name, got, err, tc.want)
		}
	}
}
