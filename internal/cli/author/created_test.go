package author

import (
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

func TestTheTimeOfAnImageIsTheOneThatIsGiven(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "0": "1970-01-01T00:00:00Z", "1577934245": "2020-01-02T03:04:05Z",
		"2020-01-02T03:04:05Z": "2020-01-02T03:04:05Z", "2020-01-02T05:04:05.9+02:00": "2020-01-02T03:04:05Z",
		"-1": "error", "253402300800": "error", "9999999999999999999": "error", "yesterday": "error", "2020-01-02": "error",
		"1e9": "error",
	} {
		var in image.Input
		err := createdFlag{text}.set(&in)
		got := in.Annotations[annotationCreated]
		if err != nil {
			got = "error"
		}
		if got != want || err == nil && want != "" && in.Created.Format(time.RFC3339) != want {
			t.Errorf("%q: %q and %v, want %q (%v)", text, got, in.Created, want, err)
		}
	}
}
