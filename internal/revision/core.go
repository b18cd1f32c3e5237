package revision

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// AnnotationKey on a revision that Crossplane core created is the key of its content and the
// choices of its package; see [Key]. The revision, and the objects of its runtime, keep the names
// that core chose.
const AnnotationKey = "xpkg.dev/revision-key"

// AnnotationNames on a package requests names of Crossplane core for its revisions: "Core" those of core since version
// 2.4, and "CoreBefore2.4" the earlier ones. `xpkg migrate to-core` sets it, so that core finds its revision later.
const AnnotationNames = "xpkg.dev/revision-names"

// The values of AnnotationNames.
const (
	NamesOfCore          = "Core"
	NamesOfCoreBefore2_4 = "CoreBefore2.4"
)

// Name returns the name of the revision of a package for the content with a digest: the name of the existing revision
// for the content and the choices of the package, or a new name.
func Name(p v1.Package, digest string, existing []v1.PackageRevision) string {
	if name := CoreName(p, digest, p.GetAnnotations()[AnnotationNames]); name != "" {
		return name
	}
	key := Key(p, digest)
	name := oci.FriendlyID(p.GetName(), key)
	if known := sameKey(name, key, existing); known != "" {
		return known
	}
	names := coreNames(p, digest)
	if i := slices.IndexFunc(existing, func(rev v1.PackageRevision) bool {
		spec := rev.RevisionSpec()
		return spec.Digest == "" && spec.Image == p.PackageSpec().Package && slices.Contains(names, rev.GetName())
	}); i >= 0 {
		return existing[i].GetName()
	}
	return name
}

// sameKey returns the name of the existing revision with a key, which its name or its annotation contains, or "". A
// package that was renamed has two, of which one is active.
func sameKey(name, key string, existing []v1.PackageRevision) string {
	found := ""
	for _, rev := range existing {
		if rev.GetName() != name && rev.GetAnnotations()[AnnotationKey] != key {
			continue
		}
		if IsActive(rev) {
			return rev.GetName()
		}
		if found == "" || rev.GetName() == name {
			found = rev.GetName()
		}
	}
	return found
}

// SameProgram reports whether the runtimes of two revisions run the same content with the same configuration.
func SameProgram(a, b v1.PackageRevision) bool {
	x, y := a.RuntimeSpec(), b.RuntimeSpec()
	return x != nil && y != nil && a.RevisionSpec().Digest != "" && a.RevisionSpec().Digest == b.RevisionSpec().Digest &&
		equality.Semantic.DeepEqual(x.PackageRuntimeSpec, y.PackageRuntimeSpec)
}

// CoreName returns the name of the revision of a package under a value of AnnotationNames, and "" for any other value.
func CoreName(p v1.Package, digest, names string) string {
	switch names {
	case NamesOfCore:
		return coreNames(p, digest)[0]
	case NamesOfCoreBefore2_4:
		return coreNames(p, digest)[1]
	}
	return ""
}

// coreNames returns the names that versions of Crossplane core use for the revision of a package
// with the content of a digest. They contain a hash of the digest and the generation of the package
// or, before version 2.4 of core, the digest.
func coreNames(p v1.Package, digest string) []string {
	_, digits, _ := strings.Cut(digest, ":")
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%d", digits, p.GetGeneration()))
	return []string{oci.FriendlyID(p.GetName(), hex.EncodeToString(sum[:])), oci.FriendlyID(p.GetName(), digits)}
}

// recordKey records the key of a revision whose name does not contain it.
func recordKey(p v1.Package, digest string, rev v1.PackageRevision) {
	key := Key(p, digest)
	if rev.GetName() != oci.FriendlyID(p.GetName(), key) {
		rev.SetAnnotations(desired.Overlay(rev.GetAnnotations(), map[string]string{AnnotationKey: key}))
	}
}
