package revision

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// AnnotationAcceptBreaks on a package or on a revision lists what may break custom resources, separated by semicolons:
// "CRD/RULE@VERSION", with the rule of a refusal, and with the tag or the digest of the version of the package that may
// break them.
const AnnotationAcceptBreaks = "xpkg.dev/accept-breaks"

// breaksSeparator separates the items of AnnotationAcceptBreaks.
const breaksSeparator = ";"

// AcceptedBreaks returns what a revision may break, by the annotations of its package and its own, without the
// versions.
func AcceptedBreaks(p v1.Package, rev v1.PackageRevision) []string {
	spec := rev.RevisionSpec()
	return acceptedBy([]metav1.Object{p, rev}, spec.Image, spec.Digest)
}

// acceptedBy returns the items of annotations for a version, without it.
func acceptedBy(annotated []metav1.Object, reference, digest string) []string {
	tag := ""
	if ref, err := oci.ParseReference(reference, oci.ParseOptions{}); err == nil {
		tag = ref.Tag
	}
	var out []string
	for _, o := range annotated {
		for item := range strings.SplitSeq(o.GetAnnotations()[AnnotationAcceptBreaks], breaksSeparator) {
			broken, version, _ := strings.Cut(strings.TrimSpace(item), "@")
			if version != "" && (version == tag || version == digest) && !slices.Contains(out, broken) {
				out = append(out, broken)
			}
		}
	}
	return out
}

// BreaksAcceptedFor returns what the version of a package with a digest may break, by the annotation of the package.
func BreaksAcceptedFor(p v1.Package, digest string) []string {
	return acceptedBy([]metav1.Object{p}, p.PackageSpec().Package, digest)
}

// AcceptBreaks lets the version of a package with a digest break more. It removes what other versions were allowed to
// break.
func AcceptBreaks(p v1.Package, digest string, breaks []string) {
	all := append(BreaksAcceptedFor(p, digest), breaks...)
	slices.Sort(all)
	all = slices.Compact(all)
	for i := range all {
		all[i] += "@" + digest
	}
	setAnnotation(p, AnnotationAcceptBreaks, strings.Join(all, breaksSeparator))
}
