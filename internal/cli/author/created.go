package author

import (
	"strconv"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

// createdFlag sets the time of an image. The time of the build is never used: builds of the same files are equal.
type createdFlag struct {
	Created string `placeholder:"TIME" env:"SOURCE_DATE_EPOCH" help:"Time in the image, such as that of the commit: in seconds since 1970, or as 2026-01-02T15:04:05Z. Without it, the image contains no time."`
}

// annotationCreated is the annotation of a manifest with its time (OCI image specification, "Pre-Defined Annotation
// Keys").
const annotationCreated = "org.opencontainers.image.created"

// set sets the time in the configuration and the manifest of an image.
func (f createdFlag) set(in *image.Input) error {
	if f.Created == "" {
		return nil
	}
	created, err := parseTime(f.Created)
	if err != nil {
		return terminal.ErrUsage.New(err, "--created %.40q (SOURCE_DATE_EPOCH) is not a time", f.Created).
			WithDo(
				"Write seconds since 1970, as `git log -1 --format=%%ct` prints them, or a time such as 2026-01-02T15:04:05Z.",
			)
	}
	in.Created = created
	in.Annotations = map[string]string{annotationCreated: created.Format(time.RFC3339)}
	return nil
}

// parseTime parses seconds since 1970 or a time of RFC 3339, up to the year 9999.
func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if seconds, notSeconds := strconv.ParseInt(text, 10, 64); notSeconds == nil {
		t, err = time.Unix(seconds, 0), nil
	}
	if err != nil {
		return time.Time{}, err
	}
	t = t.UTC().Truncate(time.Second)
	if t.Year() < 1970 || t.Year() > 9999 {
		return time.Time{}, strconv.ErrRange
	}
	return t, nil
}
