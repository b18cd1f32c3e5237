package apply_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// withProperties returns a CRD of boats with a version whose schema has properties, which are YAML.
func withProperties(t testing.TB, group, properties string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := boats(group)
	crd.Spec.Versions = crd.Spec.Versions[1:]
	crd.Spec.Versions[0].Storage = true
	schema := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.Unmarshal([]byte("{type: object, properties: {"+properties+"}}"), schema); err != nil {
		t.Fatal(err)
	}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema = schema
	return crd
}

// launch creates a boat with fields, which are YAML.
func launch(t *testing.T, group, name, fields string) {
	t.Helper()
	o := &unstructured.Unstructured{}
	text := fmt.Sprintf("{apiVersion: %s/v1, kind: Boat, metadata: {name: %s}, %s}", group, name, fields)
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, name+" can be created", func() (string, bool) {
		err := other(t).Create(t.Context(), o.DeepCopy())
		return fmt.Sprint(err), err == nil
	})
}

// counted counts the requests for boats of a group.
func counted(group string, n *atomic.Int64) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, "/apis/"+group+"/") {
				n.Add(1)
			}
			return next.RoundTrip(r)
		})
	}
}

// A change of a CRD is judged by its custom resources: the ones that break are named, unless a user accepts that, and
// nothing is read if the schema changes in no way that can break some.
func TestPreflightJudgesCustomResources(t *testing.T) {
	const (
		group = "judged.preflight.test"
		base  = "hull: {type: object, properties: {acl: {type: string}, color: {type: string}}}, crew: {type: array, items: {type: object, properties: {name: {type: string}}}}"
	)
	var requests atomic.Int64
	c, ref := newCluster(t, counted(group, &requests)), definition("boats."+group)
	crd := withProperties(t, group, base)
	if err := run(t, c, marshal(t, crd), plan.Change{Action: plan.Create, Ref: ref}); err != nil {
		t.Fatal(err)
	}
	settled(t, c, ref)
	for i := range 12 {
		fields := "hull: {color: red}"
		if i > 0 {
			fields = "hull: {acl: private}, crew: [{name: a}, {name: b}]"
		}
		launch(t, group, fmt.Sprintf("boat-%02d", i), fields)
	}
	requests.Store(0)
	const accept = "xpkg update provider/boats example.org/boats:v2 --accept boats." + group + "/"
	for name, tc := range map[string]struct {
		properties string
		accepted   []string
		reason     string
		fix        string
		note       string
		requests   int64
	}{
		"a description": {properties: strings.Replace(base, "color: {type: string}", "color: {type: string, description: any}", 1)},
		"a field that 11 of 12 have": {
			properties: strings.Replace(base, "acl: {type: string}, ", "", 1), requests: 1,
			reason: "CustomResourceDefinition boats." + group + " breaks 11 of 12 Boats: boat-01, boat-02, boat-03, boat-04, boat-05, boat-06, boat-07, " +
				"boat-08, boat-09, boat-10 and 1 more: .hull.acl is removed and has a value",
			fix: "Change or delete the objects, or keep the installed version. To accept that they break, run `" + accept + "FieldRemoved`.",
		},
		"it is accepted": {
			properties: strings.Replace(base, "acl: {type: string}, ", "", 1), requests: 1,
			accepted: []string{"boats." + group + "/FieldRemoved"},
			note: "Boat: 11 of 12 objects break, which is accepted: boat-01, boat-02, boat-03, boat-04, boat-05, boat-06, boat-07, boat-08, boat-09, " +
				"boat-10 and 1 more: .hull.acl is removed and has a value",
		},
		"another kind is accepted": {
			properties: strings.Replace(base, ", color: {type: string}", "", 1), requests: 1,
			accepted: []string{"rafts." + group + "/FieldRemoved", "boats." + group + "/TypeChanged"},
			reason:   "CustomResourceDefinition boats." + group + " breaks 1 of 12 Boats: boat-00: .hull.color is removed and has a value",
			fix:      "Change or delete the objects, or keep the installed version. To accept that they break, run `" + accept + "FieldRemoved`.",
		},
		"keys of a list": {
			properties: strings.Replace(base, "crew: {type: array, items: {type: object,",
				"crew: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name],", 1),
			requests: 1, note: "Boat: .crew: items must be unique, and clients merge them differently (now map by name), .crew[*].name: the field is required; none of 12 objects is affected",
		},
		"a pattern that no new object may break": {
			properties: strings.Replace(base, "color: {type: string}", "color: {type: string, pattern: '^b'}", 1), requests: 1,
			note: "Boat: 1 of 12 objects keep values that new objects may not have: boat-00: .hull.color is rejected: should match '^b'",
		},
	} {
		t.Run(name, func(t *testing.T) {
			requests.Store(0)
			next := withProperties(t, group, tc.properties)
			p, err := c.Preflight(t.Context(), plan.Plan{Changes: []plan.Change{{Action: plan.Update, Ref: ref}}},
				always(marshal(t, next)),
				apply.Breaks{Accepted: tc.accepted, Command: "xpkg update provider/boats example.org/boats:v2"})
			if err != nil {
				t.Fatal(err)
			}
			if n := requests.Load(); n != tc.requests {
				t.Errorf("%d requests, want %d", n, tc.requests)
			}
			var reason, fix string
			var notes []string
			for _, r := range p.Refusals {
				reason, fix = r.Reason, r.Fix
			}
			for _, j := range p.Judgements {
				notes = append(notes, j.Notes()...)
			}
			if reason != tc.reason || fix != tc.fix || strings.Join(notes, "\n") != tc.note {
				t.Errorf("refused %s\nfix %s\nnotes %q", reason, fix, notes)
			}
		})
	}
}

// All pages of a kind are judged once, also if the list expires between two of them, and the names in a plan are
// bounded.
func TestPreflightJudgesAllPages(t *testing.T) {
	const group, boatsLaunched = "pages.preflight.test", 1020
	var expired atomic.Bool
	c := newCluster(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("continue") != "" && expired.CompareAndSwap(false, true) {
				return &http.Response{
					StatusCode: http.StatusGone, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
					Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)),
				}, nil
			}
			return next.RoundTrip(r)
		})
	})
	ref := definition("boats." + group)
	crd := withProperties(t, group, "color: {type: string}")
	if err := run(t, c, marshal(t, crd), plan.Change{Action: plan.Create, Ref: ref}); err != nil {
		t.Fatal(err)
	}
	settled(t, c, ref)
	launch(t, group, "boat-0", "color: red")
	launchMany(t, group, boatsLaunched)
	p, err := c.Preflight(t.Context(), plan.Plan{Changes: []plan.Change{{Action: plan.Update, Ref: ref}}},
		always(marshal(t, withProperties(t, group, "size: {type: integer}"))), apply.Breaks{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Judgements) != 1 || len(p.Judgements[0].Findings) != 1 || !expired.Load() {
		t.Fatalf("judgements %+v, expired %t", p.Judgements, expired.Load())
	}
	j := p.Judgements[0]
	names := j.Findings[0].Objects
	if j.Objects != boatsLaunched || j.Broken != boatsLaunched || j.Findings[0].Count != boatsLaunched ||
		len(names) != plan.MaxJudgedNames || !slices.IsSorted(names) || len(slices.Compact(names)) != plan.MaxJudgedNames {
		t.Errorf("%d of %d objects break, %d by the rule, with %d names", j.Broken, j.Objects, j.Findings[0].Count, len(names))
	}
}

// launchMany creates boats until there are n.
func launchMany(t testing.TB, group string, n int) {
	t.Helper()
	var work errgroup.Group
	work.SetLimit(16)
	cluster := other(t)
	for i := 1; i < n; i++ {
		work.Go(func() error {
			return cluster.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": group + "/v1", "kind": "Boat", "metadata": map[string]any{"name": fmt.Sprintf("boat-%d", i)},
				"color": "red",
			}})
		})
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
}

// Custom resources that cannot be read, because their conversion fails, can break: a user may accept that. Without
// custom resources, nothing can.
func TestPreflightRefusesWhatCannotBeRead(t *testing.T) {
	const group = "unread.preflight.test"
	c, ref := newCluster(t, nil), definition("boats."+group)
	crd := boats(group)
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Schema = withProperties(t, group, "color: {type: string}").Spec.Versions[0].Schema
	}
	if err := run(t, c, marshal(t, crd), plan.Change{Action: plan.Create, Ref: ref}); err != nil {
		t.Fatal(err)
	}
	settled(t, c, ref)
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")},
		},
	}
	crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = false, true
	spec, err := json.Marshal(map[string]any{"spec": crd.Spec})
	if err != nil {
		t.Fatal(err)
	}
	next := crd.DeepCopy()
	delete(next.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties, "color")
	judged := func(accepted ...string) plan.Plan {
		t.Helper()
		p, err := c.Preflight(t.Context(), plan.Plan{Changes: []plan.Change{{Action: plan.Update, Ref: ref}}},
			always(marshal(t, next)), apply.Breaks{Accepted: accepted})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	createBoat(t, group)
	change(t, ref, string(spec))
	wait.Until(t, limit, "the conversion fails", func() (string, bool) {
		p := judged()
		return fmt.Sprintf("%+v", p), len(p.Refusals) == 1 && strings.Contains(p.Refusals[0].Reason, "conversion webhook")
	})
	p := judged()
	const want = "CustomResourceDefinition boats." + group + " can break Boats, which cannot be read: "
	if len(p.Refusals) != 1 || p.Refusals[0].Cause != plan.BreaksObjects || !strings.HasPrefix(p.Refusals[0].Reason, want) {
		t.Errorf("refusals: %+v", p.Refusals)
	}
	if p := judged("boats." + group + "/" + plan.Unread); len(p.Refusals) > 0 {
		t.Errorf("refused although it is accepted: %+v", p.Refusals)
	}
	change(t, ref, `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
	wait.Until(t, limit, "the boat is deleted", func() (string, bool) {
		boat := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": "Boat", "metadata": map[string]any{"name": "one"},
		}}
		err := other(t).Delete(t.Context(), boat)
		return fmt.Sprint(err), err == nil
	})
	change(t, ref, string(spec))
	wait.Until(t, limit, "nothing is refused without a boat", func() (string, bool) {
		p := judged()
		return fmt.Sprintf("%+v", p), len(p.Refusals) == 0 && len(p.Judgements) == 0
	})
}
