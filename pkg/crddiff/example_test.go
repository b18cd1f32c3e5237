package crddiff_test

import (
	"fmt"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/crddiff"
)

func ExampleCRD() {
	var t testing.T
	from := widget(&t, "{type: string, enum: [small, large]}")
	to := widget(&t, "{type: string, enum: [small], default: small}")
	for _, c := range crddiff.CRD(from, to) {
		fmt.Println(c)
	}
	// Output:
	// breaking: v1 .spec.size: values are no longer allowed (was "large")
	// needs care: v1 .spec.size: objects without the field get a value (now "small")
}
