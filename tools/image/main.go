// Command image builds the image of the package manager without a container engine: the
// binary, the certificates of public authorities, and an unprivileged user. The same
// sources give the same digest on every machine.
//
// It writes an OCI layout, and optionally pushes the image.
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
		if err := write(out, index, version); err != nil {
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

// referenceName is the annotation that names an image in an OCI layout.
const referenceName = "org.opencontainers.image.ref.name"

// write replaces the folder with an OCI layout of one image, which has the version as its
// reference name: `skopeo copy oci:DIR:VERSION …` finds it.
func write(dir string, index v1.ImageIndex, version string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{referenceName: version}))
}
