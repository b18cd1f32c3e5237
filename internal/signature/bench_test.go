package signature_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"testing"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/testing/signing"
)

// BenchmarkVerify judges the kept evidence of one image. The floor is one verification of an ECDSA signature.
func BenchmarkVerify(b *testing.B) {
	b.Run("Floor", func(b *testing.B) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			b.Fatal(err)
		}
		sum := sha256.Sum256(nil)
		made, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if !ecdsa.VerifyASN1(&key.PublicKey, sum[:], made) {
				b.Fatal("it is not accepted")
			}
		}
	})
	key, instance := signing.NewKey(b, "p256", crypto.SHA256), signing.NewSigstore(b)
	v := values{"release": key.PEM(b), "root": instance.Root(b, true)}
	statement := signing.Statement(image, signing.Sign)
	for name, tc := range map[string]struct {
		by   *v1beta1.CosignVerification
		item signature.Item
	}{
		"Key": {authorities(byKey("release")), bundle(key.Bundle(b, statement))},
		"Identity": {
			withRoot(byIdentity(v1beta1.Identity{Issuer: issuer, Subject: jane})),
			bundle(instance.Bundle(b, jane, issuer, statement)),
		},
	} {
		b.Run(name, func(b *testing.B) {
			r := v.requirement(b, tc.by)
			for b.Loop() {
				if _, _, err := r.Verify("acme/x", image, signature.Evidence{tc.item}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
