package revision

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// AnnotationUses on a revision of a Configuration records the kinds that its Compositions use, as KIND.GROUP with
// commas, and * if they may use others, for the selection of the kinds of Providers.
const AnnotationUses = "xpkg.dev/uses"

// others stands for kinds that are not known.
const others = "*"

// UsesOf returns the kinds that a revision records, and false if it records none.
func UsesOf(rev v1.PackageRevision) (uses activation.Uses, recorded bool) {
	value := rev.GetAnnotations()[AnnotationUses]
	if value == "" {
		return activation.Uses{}, false
	}
	for item := range strings.SplitSeq(value, ",") {
		if item == others {
			uses.Open = true
			continue
		}
		uses.Kinds = append(uses.Kinds, schema.ParseGroupKind(item))
	}
	return uses, true
}

// maxUses limits the length of AnnotationUses: an API server accepts 256 KiB of annotations.
const maxUses = 128 << 10

// recordUses records the kinds that a revision uses. It records none if there are too many: their Compositions name
// them once they are installed.
func recordUses(rev v1.PackageRevision, uses activation.Uses) {
	items := make([]string, len(uses.Kinds))
	for i, k := range uses.Kinds {
		items[i] = k.String()
	}
	if uses.Open {
		items = append(items, others)
	}
	if value := strings.Join(items, ","); value != "" && len(value) <= maxUses {
		setAnnotation(rev, AnnotationUses, value)
	}
}

// CurrentObjects returns the objects that the status of a revision lists, if it was written since the revision is
// active. The status of a revision that was inactive lists what existed before.
func CurrentObjects(rev v1.PackageRevision) []v1.TypedReference {
	if rev == nil {
		return nil
	}
	status := rev.RevisionStatus()
	if !IsActive(rev) || status.ObservedGeneration != rev.GetGeneration() {
		return nil
	}
	return status.ObjectRefs
}

// WrittenDefinitions returns the names of the CRDs among the objects in the status of a revision that exist.
func WrittenDefinitions(refs []v1.TypedReference) map[string]bool {
	out := map[string]bool{}
	for _, ref := range refs {
		if ref.Kind == plan.DefinitionKind && ref.UID != "" {
			out[ref.Name] = true
		}
	}
	return out
}

// IsSafeStart reports whether the package of a revision has the capability safe-start, as its status records.
func IsSafeStart(rev v1.PackageRevision) bool {
	return xpkg.Meta{Capabilities: rev.RevisionStatus().Capabilities}.HasCapability(xpkg.CapabilitySafeStart)
}

// annotationCrashKinds on a revision lists the CRDs, with commas, of the kinds without which its runtime exited.
const annotationCrashKinds = "xpkg.dev/crash-kinds"

// CrashKinds returns the CRDs of the kinds without which the runtime of a revision exited.
func CrashKinds(rev v1.PackageRevision) []string {
	if value := rev.GetAnnotations()[annotationCrashKinds]; value != "" {
		return strings.Split(value, ",")
	}
	return nil
}

// AddCrashKinds records further ones.
func AddCrashKinds(rev v1.PackageRevision, crds []string) {
	all := append(CrashKinds(rev), crds...)
	slices.Sort(all)
	setAnnotation(rev, annotationCrashKinds, strings.Join(slices.Compact(all), ","))
}

// annotationDeactivated on a revision records when kinds of its Provider were last deactivated.
const annotationDeactivated = "xpkg.dev/deactivated"

// SetDeactivated records the deactivation of kinds.
func SetDeactivated(rev v1.PackageRevision, at time.Time) {
	setAnnotation(rev, annotationDeactivated, at.UTC().Format(time.RFC3339Nano))
}

// Deactivated identifies the last deactivation of kinds; empty if there was none.
func Deactivated(rev v1.PackageRevision) string { return rev.GetAnnotations()[annotationDeactivated] }
