package install

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// fakeFacts are those of a candidate that some checks refuse.
type fakeFacts struct {
	fails map[Stage]bool
	// read counts the reads of the policy and the permissions.
	read int
}

func (f *fakeFacts) Permissions(context.Context) (rbac.Input, error) {
	f.read++
	in := rbac.Input{Kind: rbac.Provider, Revision: "boats-1"}
	if f.fails[Policy] || f.fails[Approval] {
		in.Requests = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{
			"create",
		}}}
	}
	return in, nil
}

func (f *fakeFacts) Policy(context.Context) (rbac.Policy, error) {
	f.read++
	if !f.fails[Policy] {
		return rbac.Policy{}, nil
	}
	return rbac.Parse([]byte("deny:\n- name: no-exec\n  apiGroups: [\"\"]\n  resources: [pods/exec]\n  verbs: [create]\n"))
}

func (f *fakeFacts) Granted(context.Context, rbac.Input) (everywhere, within []rbacv1.PolicyRule, err error) {
	return nil, nil, nil
}

func (f *fakeFacts) ApprovesIncrease() bool { return false }

func (f *fakeFacts) CanGrant(context.Context, rbac.Input) error {
	if f.fails[Grants] {
		return rbac.ErrPermissionMissing.New(nil, "the manager may not grant it")
	}
	return nil
}

func (f *fakeFacts) Crossplane(context.Context, xpkg.Meta) error {
	if f.fails[Crossplane] {
		return xpkg.ErrIncompatible.New(nil, "it needs another version")
	}
	return nil
}

const (
	meta = `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: boats}
---
`
	definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP}
spec:
  group: GROUP
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
`
	configuration = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: rules}
webhooks:
- name: rules.own.test
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: any, namespace: any}}
  rules: [{apiGroups: [GROUP], apiVersions: [v1], resources: [RESOURCE], operations: [CREATE]}]
`
)

// candidate returns a candidate that the checks refuse as requested.
func candidate(t *testing.T, fails map[Stage]bool) Candidate {
	t.Helper()
	content := meta + strings.ReplaceAll(definition, "GROUP", "own.test")
	if fails[Definitions] {
		content += strings.ReplaceAll(definition, "GROUP", "pkg.crossplane.io")
	}
	group, resource := "own.test", "things"
	if fails[Webhooks] {
		group, resource = `""`, "pods"
	}
	content += strings.NewReplacer("GROUP", group, "RESOURCE", resource).Replace(configuration)
	pkg, err := xpkg.Read([]byte(content), xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName("boats")
	if fails[Sharing] {
		p.SetAnnotations(map[string]string{revision.AnnotationNamespacedInstalls: revision.AllowInstalls})
	}
	rev := p.NewRevision()
	rev.SetName("boats-1")
	objects, err := desired.Of(pkg, desired.Options{Package: p.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	return Candidate{
		Set: revision.Set{Revision: rev, Package: p, Siblings: []v1.PackageRevision{rev}}, Content: pkg, Objects: objects,
		ToAllow: "xpkg approve provider/boats",
	}
}

// The manager reports the first failure, and a plan all of them, in one order, for each set of checks that fail.
func TestReview(t *testing.T) {
	codes := map[Stage]errcode.Code{
		Sharing: revision.ErrSharedWebhook, Definitions: rbac.ErrReservedDefinition, Policy: rbac.ErrPermissionDenied,
		Approval: rbac.ErrPermissionEscalation, Grants: rbac.ErrPermissionMissing, Webhooks: webhooks.ErrNotAllowed,
		Crossplane: xpkg.ErrIncompatible,
	}
	all := Stages()
	for set := range 1 << len(all) {
		fails := map[Stage]bool{}
		for i, s := range all {
			fails[s] = set&(1<<i) != 0
		}
		var want []Stage
		for _, s := range all {
			// Nothing is approved or granted that the policy denies.
			if fails[s] && (!fails[Policy] || s != Approval && s != Grants) {
				want = append(want, s)
			}
		}
		facts := &fakeFacts{fails: fails}
		r := Review{Candidate: candidate(t, fails), Facts: facts}
		var got []Stage
		for _, s := range all {
			if err := r.Check(t.Context(), s); err != nil {
				if !errors.Is(err, codes[s]) {
					t.Fatalf("%v: %s fails with %v", want, s, err)
				}
				got = append(got, s)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if most := 2; facts.read > most {
			t.Fatalf("%v: the facts were read %d times, want at most %d", want, facts.read, most)
		}
		first := (&Review{Candidate: r.Candidate, Facts: facts}).First(t.Context(), all...)
		if len(want) == 0 && first != nil || len(want) > 0 && !errors.Is(first, codes[want[0]]) {
			t.Fatalf("%v: the first failure is %v", want, first)
		}
	}
}

// A finding keeps the error of the manager, also in a saved plan.
func TestFind(t *testing.T) {
	for _, code := range codes() {
		found, refused := Find(Runtime, code.New(errors.New("it is so"), "%q cannot be run", "boats").WithDo("Try again."))
		if err := found.Err(); !refused || !errors.Is(err, code) || err.Error() != `"boats" cannot be run: it is so` ||
			err.Do != "Try again." {
			t.Errorf("%s: got %v, %v", code.Name, refused, err)
		}
	}
	if _, refused := Find(Approval, rbac.ErrPermissionEscalation.New(nil, "it waits")); refused {
		t.Error("a package that waits for an approval is refused")
	}
	if _, refused := Find(Crossplane, errors.New("the API server cannot be reached")); refused {
		t.Error("a check that was not possible refuses the package")
	}
}
