package controller_test

import (
	"crypto"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/signing"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// An image without the signature that an ImageConfig requires is not pulled. A package that was installed before
// reports that, keeps its objects, and is updated to what is signed with the key.
//
// hardening: G1, G9
func TestImagesWithoutTheRequiredSignatureAreNotInstalled(t *testing.T) {
	s := sharedEnv(t)
	s.EnsureCreated(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controller.DefaultNamespace}})
	r := newRegistry(t)
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	key, stranger := signing.NewKey(t, "p256", crypto.SHA256), signing.NewKey(t, "p256", crypto.SHA256)
	sign := func(d oci.Digest, repository string, k *signing.Key) {
		signing.AttachBundle(
			t, client, oci.MustParseReference(r.backend+"/acme/"+repository+"@"+d.String()),
			k.Bundle(t, signing.Statement(d, signing.Sign)),
		)
	}
	installed := env.NewProvider(
		"verify-installed",
		pushed(t, r, "verify-installed", provider("verify-installed", crd("installed.verify.test", "Thing", "one"))),
	)
	s.CreateTemporary(t, installed)
	untilSettled(t, s, installed)

	config := imageConfig("verify", r.address+"/acme/verify")
	config.Spec.Verification = signing.Required("verify-keys", "release")
	s.CreateTemporary(t, config)
	later := env.NewProvider(
		"verify-later", pushed(t, r, "verify-later", provider("verify-later", crd("later.verify.test", "Thing", "one"))),
	)
	next, nextDigest := r.push(
		t, "acme/verify-installed:v2", provider("verify-installed", crd("installed.verify.test", "Thing", "two")),
	)
	r.reset()
	s.CreateTemporary(t, later)
	s.WaitCondition(t, later, v1.TypeInstalled, corev1.ConditionFalse, "TrustUnreadable: ")
	s.CreateTemporary(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: controller.DefaultNamespace, Name: "verify-keys"}, Data: map[string][]byte{"release": key.PEM(t)},
	})
	s.WaitCondition(t, later, v1.TypeInstalled, corev1.ConditionFalse, "ImageNotSigned: ")
	// What is installed is judged, too, and stays.
	s.WaitCondition(t, installed, v1.TypeSynced, corev1.ConditionFalse, "ImageNotSigned: ")
	if c := installed.GetCondition(v1.TypeHealthy); c.Status != corev1.ConditionTrue {
		t.Errorf("the installed package is not healthy: %+v", c)
	}
	env.Update(t, s.Env, installed, func(p *v1.Provider) { p.Spec.Package = next })
	s.WaitCondition(t, installed, v1.TypeReady, corev1.ConditionFalse, "ImageNotSigned: ")
	sign(nextDigest, "verify-installed", stranger)
	s.WaitCondition(t, installed, v1.TypeReady, corev1.ConditionFalse, "SignatureNotTrusted: ")
	if seen := r.requests("/blobs/"); len(seen) > 1 { // The bundle of the stranger.
		t.Errorf("content without a trusted signature was pulled: %v", seen)
	}
	untilGone(t, s, "things.later.verify.test")
	if got := schemaDescription(t, s, "things.installed.verify.test"); got != "one" {
		t.Errorf("the installed CRD is of version %s", got)
	}

	sign(nextDigest, "verify-installed", key)
	untilSettled(t, s, installed)
	if got := schemaDescription(t, s, "things.installed.verify.test"); got != "two" {
		t.Errorf("after the update that is signed, the CRD is of version %s", got)
	}
	applied := installed.Status.AppliedImageConfigRefs
	if len(applied) != 1 || applied[0].Name != "verify" || applied[0].Reason != v1.ImageConfigReasonVerify {
		t.Errorf("the status names the ImageConfigs %v", applied)
	}
	s.Delete(t, config)
	untilSettled(t, s, later)
}

// The image of a runtime that is not that of the package needs the signature that an ImageConfig requires of it.
func TestRuntimesWithoutTheRequiredSignatureAreNotStarted(t *testing.T) {
	s, _, r := newDeploymentEnv(t)
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	key := signing.NewKey(t, "ed25519", crypto.SHA256)
	image, digest := r.push(t, "elsewhere/signed:v1", meta("Configuration", "image", ""))
	s.EnsureCreated(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: controller.DefaultNamespace, Name: "runtime-keys"},
		Data:       map[string][]byte{"release": key.PEM(t)},
	})
	config := imageConfig("verify-runtimes", r.address+"/elsewhere")
	config.Spec.Verification = signing.Required("runtime-keys", "release")
	s.CreateTemporary(t, config)
	ref, _ := r.push(t, "runtime/signed:v1", meta("Provider", "signed", "spec:\n  controller:\n    image: "+image+"\n")+
		crd("signed.test", "Thing", "one"))
	p := env.NewProvider("signed", ref)
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeReady, corev1.ConditionFalse, "ImageNotSigned: ")
	payload := signing.Payload(digest)
	signing.TagPayload(
		t, client, oci.MustParseReference(r.backend+"/elsewhere/signed@"+digest.String()), payload, key.Tagged(t, payload),
	)
	untilSettled(t, s, p)
	untilRuns(t, s, p, digest.String())
	remove(t, s, p)
}
