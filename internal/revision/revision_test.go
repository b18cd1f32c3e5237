package revision

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

func TestDecide(t *testing.T) {
	automatic := Policy{Automatic: true, HistoryLimit: 1}
	manual := Policy{HistoryLimit: 1}
	cases := map[string]struct {
		current string
		all     []State
		policy  Policy
		want    Decision
	}{
		"FirstAutomatic":   {"a", []State{{"a", 0, false}}, automatic, Decision{Activate: "a", Number: 1}},
		"FirstManualWaits": {"a", []State{{"a", 0, false}}, manual, Decision{}},
		"SteadyState":      {"a", []State{{"a", 1, true}}, automatic, Decision{Activate: "a", Number: 1}},
		"UpgradeAutomatic": {"b", []State{{"a", 1, true}, {"b", 0, false}}, automatic, Decision{
			Deactivate: []string{"a"}, Activate: "b", Number: 2,
		}},
		"UpgradeManualLeaves": {"b", []State{{"a", 1, true}, {"b", 0, false}}, manual, Decision{Activate: "a", Number: 1}},
		"PersonActivatesTheNew": {
			"b", []State{{"a", 1, true}, {"b", 0, true}}, manual,
			Decision{Deactivate: []string{"a"}, Activate: "b", Number: 2},
		},
		"PersonGoesBack": {
			"b", []State{{"a", 1, true}, {"b", 2, true}}, manual,
			Decision{Deactivate: []string{"b"}, Activate: "a", Number: 3},
		},
		"BackToOldContentAutomatic": {
			"a", []State{{"a", 1, false}, {"b", 2, true}}, automatic,
			Decision{Deactivate: []string{"b"}, Activate: "a", Number: 3},
		},
		"HistoryOldestFirst": {
			"d", []State{{"c", 3, true}, {"a", 1, false}, {"b", 2, false}, {"d", 0, false}}, automatic,
			Decision{Deactivate: []string{"c"}, Activate: "d", Number: 4, Collect: []string{"a", "b"}},
		},
		"HistoryZeroKeepsAll": {
			"c", []State{{"a", 1, false}, {"b", 2, false}, {"c", 3, true}}, Policy{Automatic: true},
			Decision{Activate: "c", Number: 3},
		},
		"GuideExampleOfThree": {
			"e", []State{{"a", 1, false}, {"b", 2, false}, {"c", 3, false}, {"d", 4, true}, {"e", 0, false}},
			Policy{Automatic: true, HistoryLimit: 3},
			Decision{Deactivate: []string{"d"}, Activate: "e", Number: 5, Collect: []string{"a"}},
		},
		"ManualNeverCollectsTheActive": {
			"d", []State{{"a", 1, true}, {"b", 0, false}, {"c", 0, false}, {"d", 0, false}}, manual,
			Decision{Activate: "a", Number: 1, Collect: []string{"b"}},
		},
		"HistoryKeepsTheLastHealthy": {
			"c", []State{{"a", 1, false}, {"b", 2, false}, {"c", 3, true}},
			Policy{Automatic: true, HistoryLimit: 1, Failed: []string{"b"}, Keep: []string{"c", "b"}},
			Decision{Activate: "c", Number: 3, Collect: []string{"b"}},
		},
		"RolledBackAutomatic": {
			"b", []State{{"a", 1, false}, {"b", 2, true}}, Policy{Automatic: true, HistoryLimit: 1, Refused: "b", Back: "a"},
			Decision{Deactivate: []string{"b"}, Activate: "a", Number: 3},
		},
		"RolledBackStays": {
			"b", []State{{"a", 3, true}, {"b", 2, false}}, Policy{Automatic: true, HistoryLimit: 1, Refused: "b", Back: "a"},
			Decision{Activate: "a", Number: 3},
		},
		"OtherContentAfterARollback": {
			"c", []State{{"a", 3, true}, {"b", 2, false}, {"c", 0, false}},
			Policy{Automatic: true, HistoryLimit: 2, Refused: "b", Back: "a"},
			Decision{Deactivate: []string{"a"}, Activate: "c", Number: 4},
		},
		"RolledBackManual": {
			"b", []State{{"a", 1, false}, {"b", 2, true}}, Policy{HistoryLimit: 1, Refused: "b", Back: "a"},
			Decision{Deactivate: []string{"b"}, Activate: "a", Number: 3},
		},
		"PersonTriesTheRefusedAgain": {
			"b", []State{{"a", 3, true}, {"b", 2, true}}, Policy{HistoryLimit: 1, Refused: "b", Back: "a"},
			Decision{Deactivate: []string{"a"}, Activate: "b", Number: 4},
		},
		"WhatWasToComeBackIsGone": {
			"b", []State{{"b", 2, true}}, Policy{Automatic: true, HistoryLimit: 1, Refused: "b", Back: "a"},
			Decision{Activate: "b", Number: 2},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Decide(tc.current, tc.all, tc.policy), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// carryOut returns the set of revisions after a decision.
func carryOut(d Decision, all []State) []State {
	var out []State
	for _, s := range all {
		if slices.Contains(d.Collect, s.Name) {
			continue
		}
		if slices.Contains(d.Deactivate, s.Name) {
			s.Active = false
		}
		if s.Name == d.Activate {
			s.Active, s.Number = true, d.Number
		}
		out = append(out, s)
	}
	return out
}

// From any set of revisions one decision reaches the end, with at most one
// active revision, whose number is the highest.
func TestDecideConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []State
		for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), 1, 6, rapid.ID).
			Draw(t, "names") {
			all = append(all, State{n, rapid.Int64Range(0, 9).Draw(t, "number"), rapid.Bool().Draw(t, "active")})
		}
		current := rapid.SampledFrom(all).Draw(t, "current").Name
		p := Policy{Automatic: rapid.Bool().Draw(t, "automatic"), HistoryLimit: rapid.Int64Range(0, 4).Draw(t, "limit")}
		if rapid.Bool().Draw(t, "rolled back") {
			p.Refused, p.Back = current, rapid.SampledFrom(all).Draw(t, "back").Name
		}

		d := Decide(current, all, p)
		then := carryOut(d, all)
		active := 0
		for _, s := range then {
			if s.Active {
				active++
			}
			if s.Number >= d.Number && s.Name != d.Activate && d.Activate != "" {
				t.Fatalf("%s has number %d, the active %s has %d", s.Name, s.Number, d.Activate, d.Number)
			}
		}
		if active > 1 {
			t.Fatalf("%d active revisions in %+v", active, then)
		}
		if !slices.ContainsFunc(then, func(s State) bool { return s.Name == current }) {
			t.Fatalf("the current revision was collected: %+v", d)
		}
		if d.Activate != p.Back {
			p.Refused, p.Back = "", "" // Another revision was made active: the rollback is over.
		}
		again := Decide(current, then, p)
		if diff := cmp.Diff(then, carryOut(again, then)); diff != "" {
			t.Fatalf("the second decision changes more (-first +second):\n%s", diff)
		}
	})
}

func TestKey(t *testing.T) {
	const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
	limit := int64(7)
	provider := func(change func(*v1.Provider)) *v1.Provider {
		p := &v1.Provider{}
		p.Spec.RuntimeConfigRef = &v1.RuntimeConfigReference{Name: v1.DefaultRuntimeConfigName}
		change(p)
		return p
	}
	base := Key(provider(func(*v1.Provider) {}), digest)
	if len(base) != 12 {
		t.Fatalf("key %q does not have 12 digits", base)
	}
	same := map[string]func(*v1.Provider){
		"HistoryLimit":   func(p *v1.Provider) { p.Spec.RevisionHistoryLimit = &limit },
		"PullPolicy":     func(p *v1.Provider) { p.Spec.PackagePullPolicy = "Always" },
		"Generation":     func(p *v1.Provider) { p.Generation = 12 },
		"OtherReference": func(p *v1.Provider) { p.Spec.Package = "registry.example.com/other/name:v1" },
		"NoRuntimeRef":   func(p *v1.Provider) { p.Spec.RuntimeConfigRef = nil },
	}
	for name, change := range same {
		if got := Key(provider(change), digest); got != base {
			t.Errorf("%s made a new revision", name)
		}
	}
	different := map[string]func(*v1.Provider){
		"CommonLabels":  func(p *v1.Provider) { p.Spec.CommonLabels = map[string]string{"team": "a"} },
		"RuntimeConfig": func(p *v1.Provider) { p.Spec.RuntimeConfigRef = &v1.RuntimeConfigReference{Name: "big"} },
	}
	for name, change := range different {
		if got := Key(provider(change), digest); got == base {
			t.Errorf("%s made no new revision", name)
		}
	}
	if Key(provider(func(*v1.Provider) {}), digest[:70]+"2") == base {
		t.Error("other content made no new revision")
	}
}

func TestPrevious(t *testing.T) {
	all := []State{{"c", 4, true}, {"a", 1, false}, {"never", 0, false}, {"b", 3, false}}
	for name, want := range map[string]string{"c": "b", "b": "a", "a": "", "never": "", "absent": ""} {
		if got := Previous(name, all); got != want {
			t.Errorf("before %s was %q, want %q", name, got, want)
		}
	}
}
