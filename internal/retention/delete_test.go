package retention_test

import (
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/retention"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

func TestContentThatATagOrAnArtifactNeedsIsKeptAndOtherContentLeavesItsReason(t *testing.T) {
	images := localregistry.New(t)
	repository := strings.TrimPrefix(port.Serve(t, images).URL, "http://") + "/acme/boats"
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	push := func(tag, name string) oci.Digest {
		t.Helper()
		d, err := publish.Package(t.Context(), repository+":"+
			tag, []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: "+name+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	candidate := func(tag string, d oci.Digest) retention.Candidate {
		return retention.Candidate{Repository: repository, Version: catalog.Version{Tag: tag, Digest: d}}
	}
	check := func(v retention.Candidate, want string) {
		t.Helper()
		got, err := retention.Check(t.Context(), client, v)
		if err != nil || string(got) != want && (want == "" || !strings.Contains(string(got), want)) {
			t.Errorf("%s: %q, %v; want %q", v.Tag, got, err, want)
		}
	}
	tagged := candidate("v1.0.0-rc.1", push("v1.0.0-rc.1", "a"))
	push("main", "a")
	check(tagged, "the tag main refers to it")
	moved := candidate("v1.0.0-rc.2", push("v1.0.0-rc.2", "b"))
	push("v1.0.0-rc.2", "c")
	check(moved, "its tag refers to")
	signed := candidate("v1.0.0-rc.3", push("v1.0.0-rc.3", "d"))
	push("sha256-"+signed.Digest.Hex()+".sig", "e")
	check(signed, "refers to it")
	check(candidate("v1.0.0-rc.4", signed.Digest), "deleted already")

	nested := candidate("v1.0.0-rc.6", push("v1.0.0-rc.6", "g"))
	a, err := client.Artifact(t.Context(), oci.MustParseReference(repository+":v1.0.0-rc.6"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Push(
		t.Context(), oci.MustParseReference(repository+":outer"), publish.Index(t, publish.Index(t, a)),
	); err != nil {
		t.Fatal(err)
	}
	check(nested, "the tag outer refers to it")

	// Tags like those of artifacts of other versions.
	kept := candidate("v1.0.0-rc.7", push("v1.0.0-rc.7", "h"))
	push("sha256-keepme", "h")
	check(kept, "the tag sha256-keepme refers to it")
	listed := candidate("v1.0.0-rc.8", push("v1.0.0-rc.8", "i"))
	other := "sha256-" + oci.DigestOf(nil).Hex()
	if a, err = client.Artifact(t.Context(), oci.MustParseReference(repository+":v1.0.0-rc.8")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Push(
		t.Context(), oci.MustParseReference(repository+":"+other+".att"), publish.Index(t, a),
	); err != nil {
		t.Fatal(err)
	}
	check(listed, "the tag "+other+".att refers to it")
	self := candidate("v1.0.0-rc.9", push("v1.0.0-rc.9", "j"))
	push("sha256-"+self.Digest.Hex(), "j")
	check(self, "the tag sha256-"+self.Digest.Hex()+" refers to it")

	unneeded := candidate("v1.0.0-rc.5", push("v1.0.0-rc.5", "f"))
	ref := oci.MustParseReference(repository + ":v1.0.0-rc.5")
	if _, err := packagestatus.Write(t.Context(), client, ref, catalog.Status{State: catalog.Yanked}); err != nil {
		t.Fatal(err)
	}
	check(unneeded, "")              // Its status and the artifacts of other versions do not need it.
	next := push("v1.0.0-rc.5", "l") // The tag moves after the check.
	if existed, err := retention.Delete(t.Context(), client, unneeded); err != nil || !existed {
		t.Fatal(existed, err)
	}
	if got, err := client.Resolve(t.Context(), ref); err != nil || got.Digest != next {
		t.Errorf("the tag refers to %s, %v; want %s, which was not checked", got.Digest, err, next)
	}
	if existed, err := retention.Delete(t.Context(), client, unneeded); err != nil || existed {
		t.Errorf("the content that is deleted already: %t, %v", existed, err)
	}
	check(unneeded, "its tag refers to")
	if _, err := retention.Delete(t.Context(), client, candidate("v1.0.0-rc.5", next)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resolve(t.Context(), ref); err == nil {
		t.Error("the version exists after its deletion")
	}
	status, err := packagestatus.Read(t.Context(), client, ref.WithDigest(unneeded.Digest))
	if err != nil || status == nil || status.State != catalog.Removed {
		t.Errorf("the status of the deleted version is %+v, %v", status, err)
	}
	check(unneeded, "deleted already")
}
