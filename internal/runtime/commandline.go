package runtime

import (
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
)

// CommandLine returns the program of a runtime and its arguments, as a container engine does:
// command and args replace the entrypoint and the command of the image. It fails with NoProgram if
// neither names a program.
func CommandLine(
	owner string, digest oci.Digest, image unpack.RuntimeConfig, command, args []string,
) ([]string, error) {
	out := slices.Concat(command, args)
	if len(command) == 0 {
		if len(args) == 0 {
			args = image.Cmd
		}
		out = slices.Concat(image.Entrypoint, args)
	}
	if len(out) == 0 {
		return nil, ErrNoProgram.New(nil, "the image %s of %s has neither an entrypoint nor a command", digest.Short(), owner)
	}
	return out, nil
}
