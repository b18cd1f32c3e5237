package cli_test

import (
	"crypto"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/signing"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// A package whose dependency lacks the required signature is refused before anything is written. A plan names the
// signers of all packages.
func TestInstallNeedsTheSignaturesOfAllPackages(t *testing.T) {
	b := benchWith(t, func(o *controller.Options, source *fetch.Source) {
		o.Dependencies = &controller.Dependencies{Registry: source}
	})
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	key := signing.NewKey(t, "p256", crypto.SHA256)
	sign := func(reference string) {
		ref := oci.MustParseReference(reference)
		d, err := client.Resolve(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		signing.AttachBundle(
			t, client, ref.WithDigest(d.Digest), key.Bundle(t, signing.Statement(d.Digest, signing.Sign)),
		)
	}
	(&env.Env{Config: b.config, Client: env.NewClient(t, b.config)}).EnsureCreated(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "crossplane-system"}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: "signatures"},
			Data:       map[string][]byte{"release": key.PEM(t)},
		},
	)
	config := &v1beta1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: "signatures"}}
	config.Spec.MatchImages = []v1beta1.ImageMatch{{Type: v1beta1.Prefix, Prefix: b.registry + "/signatures"}}
	config.Spec.Verification = signing.Required("signatures", "release")
	if err := b.client.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	b.deleteAfter(t, config)
	base := b.push(t, "signatures/base", "v1.0.0", "Kept")
	top := b.pushDependent(t, "signatures/top", "v1.0.0", b.registry+"/signatures/base", "Kept")
	for _, refused := range []string{"signatures/top", "signatures/base"} {
		e := b.must(t, 8, "install", "provider", top)
		if !strings.Contains(e.errors, "ImageNotSigned") || !strings.Contains(e.errors, refused) {
			t.Errorf("the error is %q, want that of %s", e.errors, refused)
		}
		b.absent(t, "signatures-top")
		if refused == "signatures/top" {
			sign(top)
		}
	}
	sign(base)
	e := b.must(t, 2, "plan", "install", "provider", top)
	if n := strings.Count(e.out, "as the ImageConfig signatures requires"); n != 2 {
		t.Errorf("the plan names %d signers, want 2:\n%s", n, e.out)
	}
	b.must(t, 0, "install", "provider", top, "--wait", "3m")
	for _, name := range []string{"signatures-top", "signatures-base"} {
		b.must(t, 0, "uninstall", "provider", name, "--yes")
	}
}
