package judgement

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// errors returns the errors of the future CRD for an update that changes nothing, and those for a new object with the
// same content, without those of the live CRD.
func (j *Judge) errors(ctx context.Context, was, is map[string]any) (rejected, tolerated field.ErrorList) {
	created := j.future.checked.ValidateCreate(ctx, is)
	// An update is rejected for errors of a new object, and by rules for changes.
	if len(created) > 0 || j.future.hasTransitions {
		rejected = j.future.checked.ValidateUpdate(ctx, touched(is), is)
	}
	if len(rejected) > 0 {
		rejected = without(rejected, j.live.checked.ValidateUpdate(ctx, touched(was), was))
	}
	if len(created) > 0 && len(rejected) == 0 {
		tolerated = without(created, j.live.checked.ValidateCreate(ctx, was))
	}
	return rejected, tolerated
}

// without returns the errors that are not among the former ones.
func without(errs, former field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		return slices.ContainsFunc(former, func(f *field.Error) bool { return isSame(e, f) })
	})
}

// isSame reports whether two errors have the same cause. Errors of the general type differ by their details: the
// constraint or the rule.
func isSame(a, b *field.Error) bool {
	return a.Type == b.Type && a.Field == b.Field && (a.Type != field.ErrorTypeInvalid || a.Detail == b.Detail)
}
