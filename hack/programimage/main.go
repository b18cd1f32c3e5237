// Command programimage builds the image of an example runtime for xpkg build
// --embed-runtime-image-tarball: the binary alone, for the architecture of this machine.
// It needs no container engine.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/testing/scratch"
)

func main() {
	out := flag.String("o", "", "file to write")
	flag.Parse()
	if *out == "" || flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: programimage -o FILE FOLDER-OF-THE-PROGRAM")
		os.Exit(3)
	}
	if err := run(*out, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "programimage:", err)
		os.Exit(1)
	}
}

func run(out, folder string) error {
	executable, err := scratch.Compile(folder)
	if err != nil {
		return err
	}
	program := filepath.Base(folder)
	image, err := scratch.Image(program, executable)
	if err != nil {
		return err
	}
	return scratch.Save(out, program, image)
}
