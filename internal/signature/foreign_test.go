package signature_test

import (
	"crypto"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/testing/signing"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// What other signers write is accepted: the evidence was read from a registry to which cosign 2 and 3 had pushed it,
// in each of their formats.
func TestForeignSigners(t *testing.T) {
	raw, err := os.ReadFile("testdata/foreign.json")
	if err != nil {
		t.Fatal(err)
	}
	var foreign struct {
		Key     string `json:"key"`
		Entries []struct {
			Signer   string             `json:"signer"`
			Digest   string             `json:"digest"`
			Evidence signature.Evidence `json:"evidence"`
		} `json:"entries"`
	}
	if err := json.Unmarshal(raw, &foreign); err != nil {
		t.Fatal(err)
	}
	if len(foreign.Entries) != 4 {
		t.Fatalf("%d signers", len(foreign.Entries))
	}
	keys := values{"cosign": []byte(foreign.Key), "stranger": signing.NewKey(t, "p256", crypto.SHA256).PEM(t)}
	signed, stranger := keys.requirement(t, authorities(byKey("cosign"))), keys.requirement(t, authorities(byKey("stranger")))
	attested := keys.requirement(t, authorities(byKey("cosign", "slsaprovenance1")))
	for _, e := range foreign.Entries {
		d, err := oci.ParseDigest(e.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := signed.Verify("acme/x", d, e.Evidence); err != nil {
			t.Errorf("%s: %v", e.Signer, err)
		}
		if _, _, err := stranger.Verify("acme/x", d, e.Evidence); !errors.Is(err, signature.ErrNotTrusted) {
			t.Errorf("%s with another key: %v", e.Signer, err)
		}
		if _, _, err := signed.Verify("acme/x", other, e.Evidence); !errors.Is(err, signature.ErrNotTrusted) {
			t.Errorf("%s of another image: %v", e.Signer, err)
		}
		hasAttestation := strings.HasSuffix(e.Signer, "attestation")
		if _, _, err := attested.Verify("acme/x", d, e.Evidence); (err == nil) != hasAttestation {
			t.Errorf("%s, its attestation: %v", e.Signer, err)
		}
	}
}
