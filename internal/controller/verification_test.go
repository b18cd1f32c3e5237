package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// An image that an ImageConfig requires to be verified is neither requested nor installed. A package that was
// installed before reports it, keeps its objects, and is not updated.
//
// hardening: G1, G9
func TestImagesThatRequireVerificationAreNotInstalled(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	installed := env.NewProvider(
		"verify-installed",
		pushed(t, r, "verify-installed", provider("verify-installed", crd("installed.verify.test", "Thing", "one"))),
	)
	s.CreateTemporary(t, installed)
	untilSettled(t, s, installed)

	config := imageConfig("verify", r.address+"/acme/verify")
	config.Spec.Verification = &v1beta1.ImageVerification{Provider: v1beta1.Cosign, Cosign: &v1beta1.CosignVerification{
		Authorities: []v1beta1.CosignAuthority{{Name: "any", Keyless: &v1beta1.KeylessReference{
			Identities: []v1beta1.Identity{{Subject: "any"}},
		}}},
	}}
	s.CreateTemporary(t, config)
	later := env.NewProvider(
		"verify-later", pushed(t, r, "verify-later", provider("verify-later", crd("later.verify.test", "Thing", "one"))),
	)
	next, _ := r.push(
		t, "acme/verify-installed:v2", provider("verify-installed", crd("installed.verify.test", "Thing", "two")),
	)
	r.reset()
	s.CreateTemporary(t, later)
	const message = "VerificationUnsupported: "
	s.WaitCondition(t, later, v1.TypeInstalled, corev1.ConditionFalse, message)
	env.Update(t, s.Env, installed, func(p *v1.Provider) { p.Spec.Package = next })
	s.WaitCondition(t, installed, v1.TypeReady, corev1.ConditionFalse, message)
	if seen := r.requests(""); len(seen) > 0 {
		t.Errorf("images that cannot be verified were requested: %v", seen)
	}
	if revs := s.Revisions(t, later); len(revs) > 0 {
		t.Errorf("an image that cannot be verified has the revision %s", revs[0].GetName())
	}
	untilGone(t, s, "things.later.verify.test")
	if got := schemaDescription(t, s, "things.installed.verify.test"); got != "one" {
		t.Errorf("the installed CRD is of version %s", got)
	}

	if err := s.Client.Delete(t.Context(), config); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	untilSettled(t, s, later)
	untilSettled(t, s, installed)
	if got := schemaDescription(t, s, "things.installed.verify.test"); got != "two" {
		t.Errorf("without the requirement, the CRD is of version %s", got)
	}
}
