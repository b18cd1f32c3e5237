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

// TakesPath reports whether the value of a flag is, or can be, a file or a folder. The placeholder says so.
func TakesPath(f *kong.Flag) bool {
	return strings.Contains(f.Tag.PlaceHolder, "FILE") || strings.Contains(f.Tag.PlaceHolder, "DIR")
}
