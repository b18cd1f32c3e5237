package flags

import (
	"context"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
)

// ReadFile reads a file that a flag names. Content describes it in errors, such as "the lock file".
func ReadFile(ctx context.Context, content, file string) ([]byte, error) {
	text, err := fileutil.ReadFile(ctx, file)
	if err != nil {
		return nil, terminal.ErrUsage.New(err, "cannot read %s", content)
	}
	return text, nil
}

// TakesAddress reports whether the value of a flag is the address of a server, or one to listen on. The placeholder
// says so. A flag for an additional address to listen on can be empty, which is as without it.
func TakesAddress(f *kong.Flag) bool {
	isAdditional := f.Tag.PlaceHolder == "HOST:PORT" && !f.HasDefault
	return f.Tag.PlaceHolder == "URL" || strings.HasPrefix(f.Tag.PlaceHolder, "HOST") && !isAdditional
}

// tagRequirement marks a flag with what signatures must have: an empty requirement would require nothing.
const tagRequirement = "requirement"

// NeedsValue reports whether an empty value of a flag is a mistake: of a file, a folder, the address of a server, or a
// requirement.
func NeedsValue(f *kong.Flag) bool {
	return TakesPath(f) || TakesAddress(f) || f.Tag.Has(tagRequirement)
}

// TakesPath reports whether the value of a flag is, or can be, a file or a folder. The placeholder says so.
func TakesPath(f *kong.Flag) bool {
	return strings.Contains(f.Tag.PlaceHolder, "FILE") || strings.Contains(f.Tag.PlaceHolder, "DIR")
}
