package faults_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// state describes all objects of an instance in the cluster, with the names of the scenario:
// "package" is the package, and "v1" and "v2" are its revisions.
type state struct {
	Package   *packageState
	Revisions map[string]revisionState
	// Objects are keyed by names such as "kept".
	Objects map[string]objectState
}

type packageState struct {
	// Wanted is the version in the spec, and Current the version in the status.
	Wanted, Current string
	// Resolved reports whether the digest in the status is the digest of the revision.
	Resolved                  bool
	Installed, Healthy, Ready condition
}

// condition is the status of a condition, with the reason unless it is True.
type condition string

// anything matches every condition.
const anything condition = "anything"

type revisionState struct {
	State          v1.RevisionState
	Number         int64
	Healthy, Ready condition
	Owners         []string
	// Objects lists the objects in the status, with a note if the UID differs.
	Objects []string
}

type objectState struct {
	// Content is the version whose spec the object has.
	Content string
	// Owners are sorted; the controller has a star.
	Owners []string
}

// of returns the state of an instance.
func (v snapshot) of(r *instance) state {
	s := state{Revisions: map[string]revisionState{}, Objects: map[string]objectState{}}
	names := map[types.UID]string{}
	for _, p := range v.packages {
		if p.GetName() == r.name {
			names[p.GetUID()] = "package"
		}
	}
	var revisions []v1.PackageRevision
	for _, rev := range v.revisions {
		if strings.HasPrefix(rev.GetName(), r.name+"-") {
			names[rev.GetUID()] = r.version(rev.RevisionSpec().Image)
			revisions = append(revisions, rev)
		}
	}
	uids := map[string]types.UID{}
	for _, o := range v.objects {
		what, group, _ := strings.Cut(o.GetName(), ".")
		if group != r.group() {
			continue
		}
		uids[o.GetName()] = o.GetUID()
		s.Objects[what] = objectState{Content: r.content(o), Owners: owners(o.GetOwnerReferences(), names)}
	}
	for i, rev := range revisions {
		key := r.version(rev.RevisionSpec().Image)
		if _, taken := s.Revisions[key]; taken {
			key = fmt.Sprintf("%s again (%d)", key, i)
		}
		s.Revisions[key] = revisionOf(rev, names, uids)
	}
	for _, p := range v.packages {
		if p.GetName() == r.name {
			s.Package = r.packageOf(p, revisions)
		}
	}
	return s
}

func (r *instance) packageOf(p v1.Package, revisions []v1.PackageRevision) *packageState {
	status := p.PackageStatus()
	out := &packageState{
		Wanted: r.version(p.PackageSpec().Package), Installed: conditionOf(p, p, v1.TypeInstalled),
		Healthy: conditionOf(p, p, v1.TypeHealthy), Ready: readyOf(p, p),
	}
	for _, rev := range revisions {
		if rev.GetName() == status.CurrentRevision {
			out.Current = r.version(rev.RevisionSpec().Image)
			out.Resolved = rev.RevisionSpec().Digest == status.ResolvedDigest && status.ResolvedDigest != "" &&
				status.CurrentIdentifier == rev.RevisionSpec().Image && status.ResolvedPackage == status.CurrentIdentifier
		}
	}
	return out
}

func revisionOf(rev v1.PackageRevision, names map[types.UID]string, uids map[string]types.UID) revisionState {
	spec := rev.RevisionSpec()
	out := revisionState{
		State: spec.DesiredState, Number: spec.Revision, Owners: owners(rev.GetOwnerReferences(), names),
		Healthy: conditionOf(rev, rev, v1.TypeRevisionHealthy), Ready: readyOf(rev, rev),
	}
	for _, o := range rev.RevisionStatus().ObjectRefs {
		what, _, _ := strings.Cut(o.Name, ".")
		if o.UID == "" || o.UID != uids[o.Name] {
			what += " (another UID)"
		}
		out.Objects = append(out.Objects, what)
	}
	slices.Sort(out.Objects)
	return out
}

// conditionOf returns a condition, with a note if it is about an older generation.
func conditionOf(o metav1.Object, c v1.Conditioned, t v1.ConditionType) condition {
	cond := c.GetCondition(t)
	out := string(cond.Status)
	if cond.Status != "True" {
		out += " " + string(cond.Reason)
	}
	if cond.ObservedGeneration != o.GetGeneration() {
		out += " (of an older generation)"
	}
	return condition(out)
}

// readyOf returns the condition Ready, with the conditions of kstatus that contradict it.
func readyOf(o metav1.Object, c v1.Conditioned) condition {
	out := conditionOf(o, c, v1.TypeReady)
	for _, t := range []v1.ConditionType{v1.TypeReconciling, v1.TypeStalled} {
		if c.GetCondition(t).Status == corev1.ConditionTrue {
			out += ", " + condition(t)
		}
	}
	return out
}

func owners(refs []metav1.OwnerReference, names map[types.UID]string) []string {
	out := []string{}
	for _, ref := range refs {
		name := cmp.Or(names[ref.UID], "unknown, "+ref.Kind+" "+ref.Name)
		if ref.Controller != nil && *ref.Controller {
			name += "*"
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// content returns the version of the spec of an object, or an empty string. It caches the result by
// resourceVersion.
func (r *instance) content(o *unstructured.Unstructured) string {
	key := string(o.GetUID()) + " " + o.GetResourceVersion()
	version, known := r.contents[key]
	if !known {
		version = r.compare(o)
		r.contents[key] = version
	}
	return version
}

func (r *instance) compare(o *unstructured.Unstructured) string {
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	// The API server sets a default for the conversion.
	delete(spec, "conversion")
	for _, version := range r.scenario.versions {
		for _, t := range objectsOf(r.scenario.kind, r.group(), version) {
			if t.kind == o.GetKind() && t.name == o.GetName() && reflect.DeepEqual(plain(t.spec), plain(spec)) {
				return version
			}
		}
	}
	return ""
}

// plain returns a value as it is decoded from JSON.
func plain(v any) (out any) {
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return err
	}
	return out
}

// equals reports whether a state matches an expected one.
func (got state) equals(want state) bool { return gocmp.Equal(want, got, conditionsOfInterest) }

// smallestDiff returns the difference between a state and the most similar expected one.
func smallestDiff(right []state, got state) string {
	var least string
	for i, want := range right {
		if diff := gocmp.Diff(want, got, conditionsOfInterest); i == 0 || len(diff) < len(least) {
			least = diff
		}
	}
	return least
}

var conditionsOfInterest = gocmp.Comparer(func(a, b condition) bool { return a == b || a == anything || b == anything })
