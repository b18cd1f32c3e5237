package activation

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func TestUsesOf(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		want   []string
	}{
		"base of patch and transform": {
			`{"mode": "Pipeline", "pipeline": [{"functionRef": {"name": "pt"}, "input": {"apiVersion": "pt.fn.crossplane.io/v1beta1",
"kind": "Resources", "resources": [{"base": {"apiVersion": "s3.aws.upbound.io/v1beta2", "kind": "Bucket"}}]}}]}`,
			[]string{"Resources.pt.fn.crossplane.io", "Bucket.s3.aws.upbound.io"},
		},
		"core kinds": {`{"base": {"apiVersion": "v1", "kind": "Secret"}, "other": {"apiVersion": "apps/v1", "kind": "Deployment"}}`, nil},
		"go template": {
			`{"template": "{{ range .x }}\n---\napiVersion: iam.aws.upbound.io/v1beta1\nkind: Role\n---\napiVersion: \"ec2.aws.upbound.io/v1\"\nkind: 'VPC'\n{{ end }}"}`,
			[]string{"Role.ec2.aws.upbound.io", "VPC.ec2.aws.upbound.io", "Role.iam.aws.upbound.io"},
		},
		"kind first": {`{"s": "kind: Role\napiVersion: iam.aws.upbound.io/v1beta1\n"}`, []string{"Role.iam.aws.upbound.io"}},
		"KCL":        {`{"source": "{apiVersion = \"s3.acme.org/v1\"\nkind = \"Bucket\"}"}`, []string{"Bucket.s3.acme.org"}},
		"Python": {
			`{"script": "rsp.desired['apiVersion'] = 's3.acme.org/v1'\nrsp.desired[\"kind\"] = \"Bucket\""}`,
			[]string{"Bucket.s3.acme.org"},
		},
		"one version for many": {
			`{"t": "{{ $v := \"s3.acme.org/v1\" }}\nkind: A\n---\nkind: B"}`, []string{"A.s3.acme.org", "B.s3.acme.org"},
		},
		"required resources": {
			`{"requirements": {"requiredResources": [{"requirementName": "x", "apiVersion": "s3.acme.org/v1", "kind": "Bucket"}]}}`,
			[]string{"Bucket.s3.acme.org"},
		},
		"no kinds": {`{"a": 1, "b": [null, true, "kind of"], "apiVersion": 3, "kind": {}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var object any
			if err := json.Unmarshal([]byte(c.object), &object); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, k := range UsesOf(object) {
				got = append(got, k.String())
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// A Composition is open if a function of it may compose kinds that its input does not name.
func TestOpenCompositions(t *testing.T) {
	const input = `"input": {"apiVersion": "x.fn.org/v1", "kind": "Input", `
	for name, c := range map[string]struct {
		pipeline string
		want     bool
	}{
		"no functions":       {``, false},
		"template":           {`{"functionRef": {"name": "function-go-templating"}, ` + input + `"t": "apiVersion: a.b.org/v1\nkind: X"}}`, false},
		"computed kind":      {`{"functionRef": {"name": "function-go-templating"}, ` + input + `"t": "apiVersion: a.b.org/v1\nkind: X\n---\nkind: {{ .k }}"}}`, true},
		"template elsewhere": {`{"functionRef": {"name": "function-go-templating"}, ` + input + `"source": "FileSystem"}}`, true},
		"no input":           {`{"functionRef": {"name": "acme-compose"}}`, true},
		"composes nothing":   {`{"functionRef": {"name": "crossplane-contrib-function-auto-ready"}}`, false},
		"both": {
			`{"functionRef": {"name": "function-auto-ready"}}, {"functionRef": {"name": "acme-compose"}}`, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pkg, err := xpkg.Read([]byte(`{apiVersion: meta.pkg.crossplane.io/v1, kind: Configuration, metadata: {name: p}}
---
{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: c}, spec: {compositeTypeRef: {apiVersion: a.b.org/v1, kind: XR}, mode: Pipeline, pipeline: [`+
				c.pipeline+`]}}`), xpkg.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			uses, err := UsedBy(pkg)
			if err != nil || uses.Open != c.want {
				t.Errorf("open %t (%v), want %t", uses.Open, err, c.want)
			}
		})
	}
}

// Any text is read without a failure, and each kind that it names is found with a group that it names.
func FuzzUsesOf(f *testing.F) {
	f.Add("apiVersion: s3.acme.org/v1\nkind: Bucket")
	f.Add("kind: \"A\" kind=B s3.acme.org/v1beta1 kind := 'C'")
	f.Fuzz(func(t *testing.T, text string) {
		for _, k := range UsesOf(text) {
			if !strings.Contains(text, k.Group) || !strings.Contains(text, k.Kind) {
				t.Errorf("%s is not in the text", k)
			}
		}
	})
}

func TestChoice(t *testing.T) {
	for value, want := range map[string]Choice{
		"all": {All: true}, "": {}, "policies": {}, " used , a.b": {Used: true, Patterns: []string{"a.b"}},
		"on-demand,used":        {Used: true, OnDemand: true},
		"*.s3.acme.org,a.b,a.b": {Patterns: []string{"*.s3.acme.org", "a.b"}},
	} {
		got, err := ParseChoice(value)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%q (%v) -want +got:\n%s", value, err, d)
		}
		again, err := ParseChoice(got.String())
		if d := cmp.Diff(got, again); d != "" || err != nil {
			t.Errorf("%q is not read as it was written (%v):\n%s", value, err, d)
		}
	}
	if _, err := ParseChoice("a.b,[a"); err == nil {
		t.Error("a malformed pattern is accepted")
	}
}

func TestSelect(t *testing.T) {
	bucket := schema.GroupKind{Group: "s3.acme.org", Kind: "Bucket"}
	kind := func(name, of string, managed bool) Kind {
		return Kind{Name: name, GroupKind: schema.GroupKind{Group: "s3.acme.org", Kind: of}, Managed: managed}
	}
	offered := []Kind{
		kind("buckets.s3.acme.org", "Bucket", true), kind("rules.s3.acme.org", "Rule", true),
		kind("configs.s3.acme.org", "Config", false),
	}
	uses := []Use{{By: ByConfiguration("network"), Kinds: []schema.GroupKind{bucket, {Group: "s3.acme.org", Kind: "Other"}}}}
	for name, c := range map[string]struct {
		needs Needs
		want  map[string][]Reason
	}{
		"without the capability": {Needs{Choice: Choice{Used: true}}, map[string][]Reason{
			"buckets.s3.acme.org": {OfPackage}, "rules.s3.acme.org": {OfPackage}, "configs.s3.acme.org": {OfPackage},
		}},
		"nothing needed": {Needs{Safe: true}, map[string][]Reason{"configs.s3.acme.org": {Configures}}},
		"used": {Needs{Safe: true, Choice: Choice{Used: true}, Uses: uses}, map[string][]Reason{
			"buckets.s3.acme.org": {ByConfiguration("network")}, "configs.s3.acme.org": {Configures},
		}},
		"used and unknown, without a choice": {Needs{
			Safe: true, Choice: Choice{Used: true, Implied: true}, Uses: append([]Use{{By: "configuration/open", Open: true}}, uses...),
		}, map[string][]Reason{
			"buckets.s3.acme.org": {ByConfiguration("network")}, "rules.s3.acme.org": {"configuration/open"},
			"configs.s3.acme.org": {Configures},
		}},
		"used and unknown, with a choice": {Needs{
			Safe: true, Choice: Choice{Used: true}, Uses: append([]Use{{By: "configuration/open", Open: true}}, uses...),
		}, map[string][]Reason{
			"buckets.s3.acme.org": {ByConfiguration("network")}, "configs.s3.acme.org": {Configures},
		}},
		"used, without inference": {Needs{Safe: true, Uses: uses}, map[string][]Reason{"configs.s3.acme.org": {Configures}}},
		"named and policies": {Needs{
			Safe: true, Choice: Choice{Patterns: []string{"b*.s3.acme.org"}},
			Policies: []Policy{{"x", []string{"*.s3.acme.org"}}, {"y", []string{"buckets.s3.acme.org", "[a"}}},
		}, map[string][]Reason{
			"buckets.s3.acme.org": {ByPolicy("x"), ByPolicy("y"), Named}, "rules.s3.acme.org": {ByPolicy("x")},
			"configs.s3.acme.org": {Configures, ByPolicy("x")},
		}},
		"kept and dropped": {Needs{
			Safe: true, Before: map[string]bool{"buckets.s3.acme.org": true, "rules.s3.acme.org": true, "gone.s3.acme.org": true},
			Deactivate: []string{"rules.*"},
		}, map[string][]Reason{"buckets.s3.acme.org": {Kept}, "configs.s3.acme.org": {Configures}}},
		"needed, although to be dropped": {Needs{
			Safe: true, Before: map[string]bool{"buckets.s3.acme.org": true}, Deactivate: []string{"*"},
			Choice: Choice{Used: true}, Uses: uses,
		}, map[string][]Reason{"buckets.s3.acme.org": {ByConfiguration("network")}, "configs.s3.acme.org": {Configures}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.needs.Select(offered)
			for crd := range s.Missed {
				if s.IsActive(crd) {
					t.Errorf("%s is active, and missed", crd)
				}
			}
			if d := cmp.Diff(c.want, s.Reasons); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// A use of a kind that it does not activate is missed.
func TestMissedKinds(t *testing.T) {
	n := Needs{Safe: true, Uses: []Use{
		{By: ByComposition("a"), Kinds: []schema.GroupKind{{Group: "x.org", Kind: "A"}, {Group: "x.org", Kind: "B"}}},
		{By: ByComposition("b"), Kinds: []schema.GroupKind{{Group: "x.org", Kind: "A"}}},
	}, Policies: []Policy{{"p", []string{"bs.x.org"}}}}
	got := n.Select([]Kind{
		{Name: "as.x.org", GroupKind: schema.GroupKind{Group: "x.org", Kind: "A"}, Managed: true},
		{Name: "bs.x.org", GroupKind: schema.GroupKind{Group: "x.org", Kind: "B"}, Managed: true},
	}).MissedKinds()
	if want := []string{"as.x.org (composition/a, composition/b)"}; !slices.Equal(got, want) {
		t.Errorf("missed %v, want %v", got, want)
	}
}

// The errors of client-go name the kinds that a program misses.
func TestNeededBy(t *testing.T) {
	s := Needs{Safe: true, Choice: Choice{Patterns: []string{"cs.x.org"}}}.Select([]Kind{
		{Name: "as.x.org", GroupKind: schema.GroupKind{Group: "x.org", Kind: "A"}, Managed: true},
		{Name: "bs.x.org", GroupKind: schema.GroupKind{Group: "x.org", Kind: "B"}, Managed: true},
		{Name: "cs.x.org", GroupKind: schema.GroupKind{Group: "x.org", Kind: "C"}, Managed: true},
	})
	for log, want := range map[string][]string{
		`no matches for kind "A" in version "x.org/v1"`:                                            {"as.x.org"},
		`{"error":"no matches for kind \"B\" in version \"x.org/v1beta1\""}`:                       {"bs.x.org"},
		"the server could not find the requested resource (get as.x.org)\nand (list bs.x.org)":     {"as.x.org"},
		"the server could not find the requested resource (list bs.x.org)":                         {"bs.x.org"},
		`no matches for kind "C" in version "x.org/v1", "A" in "x.org/v1", kind "A" of "y.org/v1"`: nil,
		"panic: nil pointer": nil,
	} {
		if got := s.NeededBy(log); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", log, got, want)
		}
	}
}

// The index agrees with filepath.Match, which defines the patterns of policies.
func TestIndexMatchesAsPoliciesDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab.*?\[\]\\^-]{0,6}`)
		patterns, name := rapid.SliceOf(text).Draw(t, "patterns"), rapid.StringMatching(`[ab.]{0,5}`).Draw(t, "name")
		x := newIndex()
		var want []Reason
		for i, p := range patterns {
			r := Reason(fmt.Sprint(i))
			x.add(r, p)
			if ok, err := filepath.Match(p, name); ok && err == nil {
				want = append(want, r)
			}
		}
		slices.Sort(want)
		if got := x.match(name); !slices.Equal(got, want) {
			t.Fatalf("%q matches %v of %q, want %v", name, got, patterns, want)
		}
	})
}

func TestUnmatched(t *testing.T) {
	got := Unmatched([]string{"*.x.org", "bs.x.org", "cs.x.org", "d*", "[a"}, []string{"as.x.org", "cs.x.org"})
	if want := []string{"bs.x.org", "d*", "[a"}; !slices.Equal(got, want) {
		t.Errorf("%q match nothing, want %q", got, want)
	}
}

// A kind that is needed is active whatever else is asked for, and a kind with a custom resource is never lost: only a
// kind that is to be deactivated and that nothing needs becomes inactive.
func TestSelectionsOnlyShrinkOnRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var offered []Kind
		for i := range 6 {
			n := string(rune('a' + i))
			offered = append(offered, Kind{
				Name: n + ".x.org", GroupKind: schema.GroupKind{Group: "x.org", Kind: n}, Managed: rapid.Bool().Draw(t, "managed"),
			})
		}
		names := rapid.SliceOf(rapid.SampledFrom([]string{"a.x.org", "b.x.org", "c.x.org", "*.x.org", "d*", "[a"}))
		n := Needs{
			Safe: rapid.Bool().Draw(t, "safe"), Before: map[string]bool{}, Deactivate: names.Draw(t, "deactivate"),
			Choice:   Choice{Used: rapid.Bool().Draw(t, "used"), Patterns: names.Draw(t, "named")},
			Policies: []Policy{{"p", names.Draw(t, "policy")}},
			Uses:     []Use{{By: ByComposition("c"), Kinds: []schema.GroupKind{{Group: "x.org", Kind: "e"}}}},
		}
		for _, k := range rapid.SliceOf(rapid.SampledFrom(offered)).Draw(t, "before") {
			n.Before[k.Name] = true
		}
		s := n.Select(offered)
		for _, k := range offered {
			needed := !n.Safe || !k.Managed || Match(n.Choice.Patterns, k.Name) || Match(n.Policies[0].Patterns, k.Name) ||
				n.Choice.Used && k.Name == "e.x.org"
			want := needed || n.Before[k.Name] && !Match(n.Deactivate, k.Name)
			if s.IsActive(k.Name) != want {
				t.Fatalf("%s: active %t, want %t with %+v", k.Name, s.IsActive(k.Name), want, n)
			}
		}
		if active := len(offered) - len(s.Inactive()); active != len(s.Reasons) {
			t.Fatalf("%d kinds with reasons, %d active", len(s.Reasons), active)
		}
	})
}

// 1,000 patterns and 10,000 kinds, against the comparison of each pattern with each kind.
func BenchmarkSelect(b *testing.B) {
	var offered []Kind
	for i := range 10000 {
		g := fmt.Sprintf("s%d.aws.upbound.io", i/20)
		offered = append(offered, Kind{
			Name: fmt.Sprintf("kinds%d.%s", i, g), GroupKind: schema.GroupKind{Group: g, Kind: fmt.Sprint(i)}, Managed: true,
		})
	}
	n := Needs{Safe: true}
	for i := range 1000 {
		pattern := offered[i*7].Name
		switch i % 3 {
		case 1:
			pattern = fmt.Sprintf("*.s%d.aws.upbound.io", i)
		case 2:
			pattern = fmt.Sprintf("kinds?*.s%d.aws.upbound.io", i)
		}
		n.Policies = append(n.Policies, Policy{fmt.Sprint(i), []string{pattern}})
	}
	var took time.Duration
	for b.Loop() {
		start := time.Now()
		n.Select(offered)
		took += time.Since(start)
	}
	floor := time.Now()
	for _, k := range offered {
		for _, p := range n.Policies {
			_, _ = filepath.Match(p.Patterns[0], k.Name)
		}
	}
	b.ReportMetric(float64(time.Since(floor))/float64(took/time.Duration(b.N)), "times-faster")
}
