// Command image builds the image of the package manager without a container engine:
// the program, the certificates of public authorities, and a user who is nobody. The
// same sources give the same digest on every machine.
//
// It writes an OCI layout, and pushes the image when it is told where to.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func main() {
	root := flag.String("root", "../..", "folder of the repository")
	out := flag.String("out", "", "folder for the OCI layout")
	push := flag.String("push", "", "reference to push the image to")
	version := flag.String("version", "v0.0.0-dev", "version of the program")
	architectures := flag.String("arch", "amd64,arm64", "architectures, with commas between them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *root, *out, *push, *version, strings.Split(*architectures, ",")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, out, push, version string, architectures []string) error {
	index, err := build(ctx, root, version, architectures)
	if err != nil {
		return err
	}
	if out != "" {
		if err := write(out, index); err != nil {
			return err
		}
	}
	if push != "" {
		if err := pushTo(ctx, push, index); err != nil {
			return err
		}
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Println(digest)
	return nil
}

// pushTo pushes an image with the credentials of docker.
func pushTo(ctx context.Context, reference string, index v1.ImageIndex) error {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return err
	}
	return remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

// write makes a layout of one image, in the place of a former one.
func write(dir string, index v1.ImageIndex) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index)
}
