package plantext

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/install"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

var updateGolden = flag.Bool("update", false, "write the golden files")

func definitionRef(name string) plan.Ref {
	return plan.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: name}
}

func changes(action plan.Action, n int, name string) []plan.Change {
	var out []plan.Change
	for i := range n {
		out = append(out, plan.Change{Action: action, Ref: definitionRef(fmt.Sprintf("%s%02ds.example.com", name, i))})
	}
	return out
}

// owned are changes of which all but the first few are of owners alone.
func owned(all []plan.Change, content int) []plan.Change {
	for i := content; i < len(all); i++ {
		all[i].MetadataOnly = true
	}
	return all
}

// plans are one of each sort of plan.
func plans() map[string]*planner.Plan {
	one := &planner.Version{Reference: "registry.example.com/boats:v1", Digest: "sha256:11"}
	two := &planner.Version{Reference: "registry.example.com/boats:v2@sha256:22", Digest: "sha256:22"}
	return map[string]*planner.Plan{
		"install": {
			Operation: planner.Install, Package: planner.Package{Kind: "Provider", Name: "boats", To: one},
			Revisions: []planner.RevisionChange{{
				Action: planner.CreateRevision, Name: "boats-1", Number: 1, State: v1.RevisionActive,
			}},
			Objects: plan.Plan{
				Changes: append(changes(plan.Create, 13, "boat"), changes(plan.Adopt, 2, "raft")...), Unchanged: 1,
			},
			Dependencies: []planner.Dependency{
				{Package: "registry.example.com/water", Constraint: ">=v1", State: "satisfied", Installed: "registry.example.com/water:v1.1.0"},
				{Package: "registry.example.com/wind", Constraint: ">=v2", State: "incompatible", Installed: "registry.example.com/wind:v1.0.0"},
				{Package: "registry.example.com/harbor", State: "missing"},
				{Package: "registry.example.com/radio", Constraint: ">=v1", State: "absent", Optional: true, Kind: "Function"},
			},
			Warnings: []string{"Objects are changed only when these are installed: registry.example.com/harbor."},
		},
		"update": {
			Operation: planner.Update,
			Package:   planner.Package{Kind: "Provider", Name: "boats", From: one, To: two, Object: []byte(`{"spec":{"a":1}}`)},
			Revisions: []planner.RevisionChange{
				{Action: planner.DeactivateRevision, Name: "boats-1", Number: 1, State: v1.RevisionInactive},
				{Action: planner.CreateRevision, Name: "boats-2", Number: 2, State: v1.RevisionActive},
				{Action: planner.CollectRevision, Name: "boats-0", State: v1.RevisionInactive},
			},
			Objects: plan.Plan{Changes: append(
				append(owned(changes(plan.TakeOver, 11, "boat"), 3), changes(plan.Correct, 1, "raft")...),
				changes(plan.Release, 1, "canoe")...,
			)},
			KindChanges: []crddiff.ChangedCRD{
				{Name: "boats.example.com", Changes: []crddiff.Change{
					{Class: crddiff.Safe, Type: crddiff.DocumentationChanged, Version: "v1", Path: ".spec.size", Reason: "the description changed"},
					{Class: crddiff.Care, Type: crddiff.EnumValuesRemoved, Version: "v1", Path: ".spec.color", From: "red", Reason: "values are no longer allowed"},
				}},
				{Name: "rafts.example.com", Changes: []crddiff.Change{{
					Class: crddiff.Breaking, Type: crddiff.FieldRemoved, Version: "v1", Path: ".spec.logs",
					Reason: "the field was removed",
				}}},
			},
		},
		"moves": {
			Operation: planner.Update,
			Package:   planner.Package{Kind: "Provider", Name: "boats", From: one, To: two, Object: []byte(`{"spec":{"a":1}}`)},
			Objects:   plan.Plan{Changes: changes(plan.TakeOver, 1, "boat")},
			Dependencies: []planner.Dependency{
				{Package: "registry.example.com/water", Constraint: ">=v2", State: "incompatible", Installed: "registry.example.com/water:v1.0.0"},
				{Package: "registry.example.com/wind", Constraint: ">=v2", State: "progressing", Installed: "registry.example.com/wind:v2.0.0"},
				{Package: "registry.example.com/harbor", State: "missing"},
			},
			AddedPackages: []planner.AddedPackage{
				{Kind: "Provider", Name: "acme-water", From: "registry.example.com/water:v1.0.0", Reference: "registry.example.com/water:v2.0.0", RequiredBy: []string{
					"registry.example.com/boats", "registry.example.com/harbor",
				},
					KindChanges: []crddiff.ChangedCRD{{Name: "wells.example.com", Changes: []crddiff.Change{{
						Class: crddiff.Breaking, Type: crddiff.FieldRemoved, Version: "v1", Path: ".spec.depth",
						Reason: "the field was removed",
					}}}}},
				{Kind: "Configuration", Reference: "registry.example.com/harbor:v1.0.0", RequiredBy: []string{
					"registry.example.com/boats",
				}},
			},
			Breaks: []planner.Broken{
				{Kind: "Configuration", Name: "fleet", Requires: "registry.example.com/boats", Constraint: "<v2", Installed: "v2"},
				{Kind: "Provider", Name: "rowing", Requires: "registry.example.com/boats"},
			},
		},
		"refused": {
			Operation: planner.Install, Package: planner.Package{Kind: "Configuration", Name: "boats", To: one},
			Objects: plan.Plan{Changes: changes(plan.Create, 1, "boat"), Refusals: []plan.Refusal{
				{Ref: definitionRef(
					"rafts.example.com",
				), Holder: "ProviderRevision/other", Reason: "CustomResourceDefinition rafts.example.com belongs to ProviderRevision/other"},
			}},
		},
		"incompatible": {
			Operation: planner.Install, Package: planner.Package{Kind: "Function", Name: "row", To: one},
			Findings: []install.Finding{
				{Stage: install.Crossplane, Code: "IncompatibleCrossplane", Reason: "Function \"row\" does not work with Crossplane 2.1.0: it requires \">=v3\"", Fix: "Install another version."},
				{Package: "provider/wind", Stage: install.Policy, Code: "PermissionDenied", Reason: "the package requests permissions that the policy does not allow", Fix: "Change the policy."},
			},
		},
		"permissions": {
			Operation: planner.Update,
			Package:   planner.Package{Kind: "Provider", Name: "boats", From: one, To: two, Object: []byte(`{"spec":{"a":1}}`)},
			Permissions: &planner.Permissions{
				Added: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{
					"get", "list",
				}}},
				Removed: []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"rafts"}, Verbs: []string{
					"delete",
				}}},
			},
			Objects: plan.Plan{Changes: changes(plan.TakeOver, 1, "boat")},
		},
		"escalation": {
			Operation: planner.Install, Package: planner.Package{Kind: "Function", Name: "boats", To: one},
			Permissions: &planner.Permissions{
				Added: []rbacv1.PolicyRule{
					{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
					{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}},
				},
				Foreign: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{
					"create",
				}}},
				NeedsApproval: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{
					"create",
				}}},
			},
			Objects: plan.Plan{Unchanged: 1},
		},
		"denied": {
			Operation: planner.Install, Package: planner.Package{Kind: "Provider", Name: "boats", To: one},
			Permissions: &planner.Permissions{
				Added: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
			},
			Findings: []install.Finding{{
				Stage: install.Policy, Code: "PermissionDenied",
				Reason: "the package requests permissions that the policy does not allow: get pods in the core group (denied by the rule \"no-pods\")",
			}},
			Objects: plan.Plan{Changes: changes(plan.Create, 1, "boat")},
		},
		"nothing": {
			Operation:     planner.Update,
			Package:       planner.Package{Kind: "Provider", Name: "boats", From: one, To: one, Object: []byte(`{"spec":{}}`)},
			Preconditions: planner.Preconditions{Spec: []byte(`{}`)}, Objects: plan.Plan{Unchanged: 3},
		},
		"uninstall": {
			Operation: planner.Uninstall, Package: planner.Package{Kind: "Provider", Name: "boats", From: one},
			Revisions: []planner.RevisionChange{{
				Action: planner.CollectRevision, Name: "boats-1", Number: 1, State: v1.RevisionActive,
			}},
			Orphans: []planner.Orphan{
				{Kind: "Provider", Name: "oar", Reference: "registry.example.com/oar:v1.0.0"},
				{Kind: "Function", Name: "row", Reference: "registry.example.com/row:v2.1.0", Removed: true},
			},
			Objects: plan.Plan{
				Changes: append(changes(plan.Delete, 2, "boat"), changes(plan.Leave, 1, "raft")...), Unchanged: 1,
			},
			CustomResources: []planner.CustomResources{{CRD: "boat00s.example.com", Count: 412}, {
				CRD: "boat01s.example.com", Unknown: "they may not be listed",
			}},
		},
		"hostile": {
			Operation: planner.Install,
			Package:   planner.Package{Kind: "Provider", Name: "a\x1b[2Jb", To: &planner.Version{Reference: "x\ny\u202ez"}},
			Objects:   plan.Plan{Changes: []plan.Change{{Action: plan.Create, Ref: definitionRef("c\td\r\ne")}}},
			Warnings:  []string{"f\n\x07g"},
		},
	}
}

// hardening: L2
func TestPlanText(t *testing.T) {
	for name, p := range plans() {
		for suffix, write := range map[string]func(io.Writer){
			".txt":          pageOf(p, 0).writeText,
			"-terminal.txt": pageOf(p, fewOnTerminal).writeText,
			".md":           func(w io.Writer) { WriteMarkdown(w, p) },
		} {
			t.Run(name+suffix, func(t *testing.T) {
				var out bytes.Buffer
				write(&out)
				file := filepath.Join("testdata", "plan", name+suffix)
				if *updateGolden {
					if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), out.String()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Several plans end with their totals, so that the changes of an update of many packages can be judged without reading
// all of them. A single plan has no totals beside its summary.
func TestSeveralPlansEndWithTotals(t *testing.T) {
	change := func(o planner.Operation, action plan.Action, class crddiff.Class) *planner.Plan {
		return &planner.Plan{
			Operation: o, Package: planner.Package{Kind: "Provider", Name: "p"},
			Objects: plan.Plan{Changes: []plan.Change{{Action: action, Ref: plan.Ref{
				Kind: "CustomResourceDefinition", Name: "a",
			}}}},
			KindChanges: []crddiff.ChangedCRD{{Name: "a", Changes: []crddiff.Change{{Class: class}}}},
		}
	}
	update, breaking := change(planner.Update, plan.Update, crddiff.Safe),
		change(planner.Update, plan.Update, crddiff.Breaking)
	remove := change(planner.Uninstall, plan.Delete, crddiff.Safe)
	remove.KindChanges, remove.CustomResources = nil, []planner.CustomResources{{Count: 3}}
	var out bytes.Buffer
	Write(&out, update, breaking, remove)
	want := "\n\nIn total 3 packages: 2 to update, 1 to uninstall. Objects: 2 to update (2 with new content), 1 to delete. " +
		"Changes of 2 kinds: 1 breaking, 1 safe. 3 custom resources will be deleted.\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("got\n%s\nwant at the end %s", out.String(), want)
	}
	out.Reset()
	if Write(&out, update); strings.Contains(out.String(), "In total") {
		t.Errorf("a single plan has totals:\n%s", out.String())
	}
}

func TestAPackageThatProvidesSeveralKindsIsOneDependency(t *testing.T) {
	p := &planner.Plan{Operation: planner.Update, Package: planner.Package{Kind: "Provider", Name: "reefs"}}
	for _, kind := range []string{"", "Tide.reef.test", "Wave.reef.test"} {
		p.Dependencies = append(p.Dependencies, planner.Dependency{
			Package: "registry.example.com/tides", Constraint: ">=v1", State: "satisfied",
			Installed: "registry.example.com/tides:v1", CRD: kind,
		})
	}
	p.Dependencies = append(p.Dependencies, planner.Dependency{
		Package: "registry.example.com/tides", State: "missing", CRD: "Neap.reef.test",
	})
	want := [][]string{
		{"satisfied", "registry.example.com/tides >=v1 for Tide.reef.test and Wave.reef.test", ""},
		{"missing", "registry.example.com/tides for Neap.reef.test", ""},
	}
	at := slices.IndexFunc(pageOf(p, 0).sections, func(s section) bool { return s.title == "dependencies" })
	if diff := cmp.Diff(want, pageOf(p, 0).sections[at].rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An update without changed objects names the runtime that is replaced, unless none runs.
func TestSummaryOfAnUpdateWithoutObjects(t *testing.T) {
	p := &planner.Plan{
		Operation: planner.Update, Package: planner.Package{Kind: v1.ProviderKind, Name: "boats"},
		Revisions: []planner.RevisionChange{{Action: planner.CreateRevision, Name: "boats-2", State: v1.RevisionActive}},
	}
	for withoutRuntime, want := range map[bool]string{
		false: "The runtime is replaced by the runtime of revision boats-2, ", true: "Revision boats-2 becomes active, ",
	} {
		p.WithoutRuntime = withoutRuntime
		if got := summary(p); !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The overview of many plans fits on a screen: one line for each, worst first, and the totals.
func TestOverviewOfManyPlans(t *testing.T) {
	var all []*planner.Plan
	for i := range 40 {
		all = append(all, &planner.Plan{
			Operation: planner.Install, Package: planner.Package{
				Kind: "Provider", Name: fmt.Sprintf("p%02d", i), To: &planner.Version{Reference: "r.test/p:v1.0.0"},
			},
		})
	}
	from, to := &planner.Version{Reference: "r.test/p:v1.0.0"}, &planner.Version{Reference: "r.test/p:v2.0.0"}
	all[38].Operation, all[38].Package.From, all[38].Package.To = planner.Update, from, to
	all[38].KindChanges = []crddiff.ChangedCRD{{Name: "a", Changes: []crddiff.Change{{Class: crddiff.Breaking}}}}
	all[39].Operation, all[39].Package.From, all[39].Package.To = planner.Uninstall, from, nil
	all[39].CustomResources = []planner.CustomResources{{CRD: "boats.test", Count: 412}}
	all[39].Breaks = []planner.Broken{{Kind: "Configuration", Name: "harbor"}}
	all[5].Warnings = []string{"its tag has moved"}
	var out bytes.Buffer
	writeOverview(&out, all)
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	for i, want := range []string{
		"  uninstall provider/p39  v1.0.0           deletes 412 custom resources",
		"                                           breaks 1 dependent",
		"  update provider/p38     v1.0.0 → v2.0.0  1 breaking change of kinds",
		"  install provider/p05    v1.0.0           1 note",
		"  install provider/p00    v1.0.0",
	} {
		if strings.TrimRight(lines[i], " ") != want {
			t.Errorf("line %d: got %q, want %q", i, lines[i], want)
		}
	}
	if len(lines) > 40 || !strings.Contains(out.String(), "  and 10 more without consequences to decide about\n") ||
		!strings.Contains(out.String(), "In total 40 packages: ") {
		t.Errorf("%d lines\n%s", len(lines), out.String())
	}
	for _, l := range lines[:31] {
		if len([]rune(l)) > 80 {
			t.Errorf("%d columns: %s", len([]rune(l)), l)
		}
	}
}
