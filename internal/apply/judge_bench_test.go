package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// BenchmarkJudge judges 1,000 custom resources of a kind, beside the bare list of the same pages as the floor.
func BenchmarkJudge(b *testing.B) {
	const group, objects, page = "bench.preflight.test", 1000, 500
	live := withProperties(b, group, "spec: {type: object, properties: {acl: {type: string}, color: {type: string, maxLength: 10}, tags: {type: object, additionalProperties: {type: string}}}}")
	next := withProperties(b, group, "spec: {type: object, properties: {color: {type: string, pattern: '^r', maxLength: 10, x-kubernetes-validations: [{rule: size(self) > 1}]}, tags: {type: object, additionalProperties: {type: string}}}}")
	crd, err := json.Marshal(live)
	if err != nil {
		b.Fatal(err)
	}
	future, err := json.Marshal(next)
	if err != nil {
		b.Fatal(err)
	}
	pages := map[string][]byte{}
	for start := 0; start < objects; start += page {
		var items []any
		for i := range page {
			items = append(items, map[string]any{
				"apiVersion": group + "/v1", "kind": "Boat", "metadata": map[string]any{"name": fmt.Sprint("boat-", start+i)},
				"spec": map[string]any{"color": "red", "tags": map[string]any{"a": "b", "c": "d"}},
			})
		}
		metadata, token := map[string]any{}, ""
		if start > 0 {
			token = "next"
		} else {
			metadata["continue"] = "next"
		}
		if pages[token], err = json.Marshal(map[string]any{"metadata": metadata, "items": items}); err != nil {
			b.Fatal(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/" + group + "/v1/boats":
			_, _ = w.Write(pages[r.URL.Query().Get("continue")])
		case "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats." + group:
			_, _ = w.Write(crd)
		default:
			_, _ = w.Write([]byte(`{"kind":"List","items":[]}`))
		}
	}))
	defer server.Close()
	c, err := apply.NewCluster(&rest.Config{Host: server.URL})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			for _, token := range []string{"", "next"} {
				list(b, server.URL+"/apis/"+group+"/v1/boats?limit=500&continue="+token)
			}
		}
	})
	b.Run("judge", func(b *testing.B) {
		p := plan.Plan{Changes: []plan.Change{{Action: plan.Update, Ref: definition("boats." + group)}}}
		for b.Loop() {
			out, err := c.Preflight(context.Background(), p, always(future), apply.Breaks{})
			if err != nil || len(out.Judgements) != 1 || out.Judgements[0].Objects != objects || len(out.Refusals) > 0 {
				b.Fatal(out, err)
			}
		}
	})
}

// list reads a page and counts its items.
func list(b *testing.B, url string) {
	b.Helper()
	res, err := http.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	var page struct{ Items []json.RawMessage }
	if err := json.NewDecoder(res.Body).Decode(&page); err != nil || len(page.Items) != 500 {
		b.Fatal(len(page.Items), err)
	}
}
