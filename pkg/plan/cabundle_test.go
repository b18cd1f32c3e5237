package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A different CA bundle costs one write of each object that contains one, unknown
// bundles cost none, and an object without a bundle has no record of one.
func TestEstablishWritesANewCABundle(t *testing.T) {
	ours := []metav1.OwnerReference{pkg.Reference(true)}
	trusting := func(trusts string) Live {
		l := live("d2", ours...)[crd]
		if trusts != "" {
			l.Annotations[CABundleHashAnnotation] = trusts
			l.ManagedAnnotations = []string{ContentDigestAnnotation, CABundleHashAnnotation}
		}
		return l
	}
	for name, c := range map[string]struct {
		desired  Desired
		live     Live
		content  bool
		metadata bool
	}{
		"Same":        {Desired{CallsRuntime: true, CABundleHash: "t1"}, trusting("t1"), false, false},
		"Others":      {Desired{CallsRuntime: true, CABundleHash: "t2"}, trusting("t1"), true, false},
		"First":       {Desired{CallsRuntime: true, CABundleHash: "t1"}, trusting(""), true, false},
		"Unknown":     {Desired{CallsRuntime: true}, trusting("t1"), false, false},
		"CallsNobody": {Desired{}, trusting("t1"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			c.desired.Ref, c.desired.Digest = crd, "d2"
			p := Establish([]Desired{c.desired}, map[Ref]Live{crd: c.live}, nil, who)
			if (len(p.Changes) > 0) != (c.content || c.metadata) ||
				len(p.Changes) > 0 && p.Changes[0].MetadataOnly != c.metadata {
				t.Fatalf("%+v", p)
			}
			switch {
			case c.content && p.Changes[0].Annotations[CABundleHashAnnotation] != c.desired.CABundleHash:
				t.Errorf("trusts %v", p.Changes[0].Annotations)
			case c.metadata && !cmp.Equal(p.Changes[0].RemoveAnnotations, []string{CABundleHashAnnotation}):
				t.Errorf("removes %v", p.Changes[0].RemoveAnnotations)
			}
		})
	}
}

func TestHoldSplitsOffEveryWebhookConfiguration(t *testing.T) {
	mutating, validating := Ref{Kind: "MutatingWebhookConfiguration", Name: "one"},
		Ref{Kind: "ValidatingWebhookConfiguration", Name: "two"}
	p := Plan{Unchanged: 3, Refusals: []Refusal{{Ref: crd}}}
	for _, ref := range []Ref{crd, mutating, validating} {
		p.Changes = append(p.Changes, Change{Ref: ref})
	}
	now, held := p.Hold()
	want := Plan{Unchanged: 3, Refusals: p.Refusals, Changes: []Change{{Ref: crd}}}
	if diff := cmp.Diff(want, now); diff != "" {
		t.Errorf("now (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Plan{Changes: []Change{{Ref: mutating}, {Ref: validating}}}, held); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
}
