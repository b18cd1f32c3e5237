package planner

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// withdrawnLookup is a registry with one package, whose version v1.0.0 can have a status.
type withdrawnLookup struct {
	sourcetest.NoHints
	status  *catalog.VersionStatus
	retract string // by the version v1.1.0
	err     error
}

// Tags implements [fetch.Lookup].
func (w withdrawnLookup) Tags(_ context.Context, o fetch.Origin) (fetch.TagList, error) {
	tags := []string{"v1.0.0", "v1.1.0"}
	if w.status != nil {
		tags = append(tags, catalog.StatusTag(w.status.Digest))
	}
	return fetch.TagList{Tags: tags, From: o.Ref}, w.err
}

// Describe implements [fetch.Lookup].
func (w withdrawnLookup) Describe(_ context.Context, o fetch.Origin, _ oci.Digest) (fetch.Description, error) {
	m := xpkg.Meta{Kind: xpkg.Provider, Name: "boats"}
	if o.Ref.Tag == "v1.1.0" && w.retract != "" {
		m.Annotations = map[string]string{catalog.AnnotationRetract: w.retract}
	}
	return fetch.Description{Digest: oci.DigestOf([]byte(o.Ref.Tag)), Meta: m}, nil
}

// Prove implements [fetch.Lookup].
func (w withdrawnLookup) Prove(ctx context.Context, o fetch.Origin, d oci.Digest) (fetch.Description, error) {
	return w.Describe(ctx, o, d)
}

// Status implements [fetch.Lookup].
func (w withdrawnLookup) Status(_ context.Context, _ fetch.Origin, d oci.Digest) (*catalog.VersionStatus, error) {
	if w.status == nil || w.status.Digest != d {
		return nil, nil
	}
	return w.status, nil
}

func TestAPlanWarnsOfAVersionThatWasWithdrawn(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	digest := oci.DigestOf([]byte("v1.0.0"))
	yanked := &catalog.VersionStatus{
		Status: catalog.Status{State: catalog.Yanked, Reason: catalog.Broken, Message: "it sinks", ReplacedBy: "v1.1.0"},
		Tag:    "v1.0.0", Digest: digest,
	}
	for name, c := range map[string]struct {
		lookup withdrawnLookup
		pull   corev1.PullPolicy
		want   string
	}{
		"yanked": {
			withdrawnLookup{status: yanked}, "",
			"registry.example.org/boats v1.0.0 is yanked (broken): it sinks; use v1.1.0 instead.",
		},
		"retracted": {
			withdrawnLookup{retract: `[{"versions":"<1.1","message":"it sinks"}]`}, "",
			"registry.example.org/boats v1.0.0 is retracted: it sinks.",
		},
		"neither":     {withdrawnLookup{retract: `[{"versions":"<1.0.0"}]`}, "", ""},
		"unreachable": {withdrawnLookup{status: yanked, err: errors.New("no route")}, "", ""},
		"never pull":  {withdrawnLookup{status: yanked}, corev1.PullNever, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := v1.NewPackage(v1.ProviderKind)
			p.PackageSpec().Package, p.PackageSpec().PackagePullPolicy = "registry.example.org/boats:v1.0.0", c.pull
			pl := (&Planner{
				Reader: fake.NewClientBuilder().WithScheme(scheme).Build(), Registry: c.lookup, Namespace: "crossplane-system",
			}).start(Options{})
			out := &Plan{}
			pl.warnOfStatus(t.Context(), p, state.Resolution{Digest: digest}, out)
			if got := strings.Join(out.Warnings, "\n"); got != c.want {
				t.Errorf("the warnings are %q, want %q", got, c.want)
			}
		})
	}
}
