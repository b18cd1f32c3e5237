package export

import "testing"

func TestFilesOfPages(t *testing.T) {
	for address, want := range map[string]string{
		"/":                              "index.html",
		"/feed.atom":                     "feed.atom",
		"/p/h/a@v1":                      "p/h/a@v1/index.html",
		"/p/h/a@v1/icon":                 "p/h/a@v1/icon.png",
		"/p/h/a@/feed.atom":              "p/h/a@/feed.atom",
		"/p/h/a@v1/graph.svg":            "p/h/a@v1/graph.svg",
		"/p/h/a@v1/k/g/K/crd.yaml":       "p/h/a@v1/k/g/K/crd.yaml",
		"/p/h/a@v1/k/g/K/icon":           "p/h/a@v1/k/g/K/icon.png",
		"/p/h/a@v1/k/g/icon":             "p/h/a@v1/k/g/icon/index.html",
		"/p/h/a/feed.atom@":              "p/h/a/feed.atom@/index.html",
		"/p/h/a/icon@":                   "p/h/a/icon@/index.html",
		"/p/h/a/feed.atom/b":             "p/h/a/feed.atom/b/index.html",
		"/k/g/icon":                      "k/g/icon/index.html",
		"/k/g/K/icon":                    "k/g/K/icon.png",
		"/k/g/K/crd.yaml":                "k/g/K/crd.yaml",
		"/k/g/K/v1/fields/spec/icon":     "k/g/K/v1/fields/spec/icon/index.html",
		"/k/g/K/v1/fields/data/crd.yaml": "k/g/K/v1/fields/data/crd.yaml/index.html",
		"/g/icon":                        "g/icon/index.html",
		"/schemas/g/k_v1.json":           "schemas/g/k_v1.json",
	} {
		if got := fileOf(address); got != want {
			t.Errorf("%s is the file %s, want %s", address, got, want)
		}
	}
}
