package revision

import (
	"fmt"
	"strconv"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// OnDelete answers what happens to the custom resources of a package that is deleted. The zero value is no answer.
type OnDelete struct {
	// Orphan keeps them, with all objects of the package. A later install maintains the objects again.
	Orphan bool
	// Cascade deletes them, if they are at most AtMost.
	Cascade bool
	AtMost  int64
}

const (
	orphan  = "orphan"
	cascade = "cascade="
)

// UnmarshalText parses the value of [v1.AnnotationOnDelete]: "orphan", "cascade=N", or an empty text for no answer.
func (a *OnDelete) UnmarshalText(text []byte) error {
	value := strings.TrimSpace(string(text))
	*a = OnDelete{Orphan: value == orphan}
	if value == orphan || value == "" {
		return nil
	}
	number, isCascade := strings.CutPrefix(value, cascade)
	n, err := strconv.ParseUint(number, 10, 50)
	if !isCascade || err != nil {
		return fmt.Errorf("%q is neither %s nor %sN, where N is the number of custom resources that may be deleted",
			value, orphan, cascade)
	}
	a.Cascade, a.AtMost = true, int64(n) //nolint:gosec // It has at most 50 bits.
	return nil
}

// MarshalText returns the value of [v1.AnnotationOnDelete].
func (a OnDelete) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// String returns the value of [v1.AnnotationOnDelete].
func (a OnDelete) String() string {
	switch {
	case a.Orphan:
		return orphan
	case a.Cascade:
		return cascade + strconv.FormatInt(a.AtMost, 10)
	}
	return ""
}

// Permits reports whether the answer permits the deletion of a number of custom resources. Without custom resources,
// none is needed.
func (a OnDelete) Permits(count int64) bool { return count == 0 || a.Cascade && count <= a.AtMost }

// OnDeleteOf returns the answer in the annotations of a package. It fails if the annotation is not valid.
func OnDeleteOf(p v1.Package) (OnDelete, error) {
	var a OnDelete
	if err := a.UnmarshalText([]byte(p.GetAnnotations()[v1.AnnotationOnDelete])); err != nil {
		return OnDelete{}, fmt.Errorf("the annotation %s: %w", v1.AnnotationOnDelete, err)
	}
	return a, nil
}
