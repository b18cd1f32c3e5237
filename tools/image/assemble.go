package main

import (
	"archive/tar"
	"bytes"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// entrypoint is the path of the xpkg binary.
	entrypoint = "/usr/local/bin/xpkg"
	// user is the numeric user of the image. It has no account on a node.
	user = "65532:65532"

	passwd = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"
)

// file is one of a layer. A name that ends with a slash is a folder.
type file struct {
	name string
	mode int64
	data []byte
}

// assemble builds the image of a binary. Files that change seldom are in a separate
// layer, which an update does not download again.
func assemble(program []byte, version, arch string) (v1.Image, error) {
	certificates, err := authorities()
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range [][]file{
		{
			{"etc/", 0o755, nil}, {"etc/group", 0o644, []byte(group)}, {"etc/passwd", 0o644, []byte(passwd)},
			{"etc/ssl/", 0o755, nil}, {"etc/ssl/certs/", 0o755, nil}, {"etc/ssl/certs/ca-certificates.crt", 0o644, certificates},
			{"tmp/", 0o1777, nil},
		},
		{{"usr/", 0o755, nil}, {"usr/local/", 0o755, nil}, {"usr/local/bin/", 0o755, nil}, {entrypoint[1:], 0o755, program}},
	} {
		layer, err := pack(files)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{
			CreatedBy: "tools/image",
		}}); err != nil {
			return nil, err
		}
	}
	return configure(image, version, arch)
}

func configure(image v1.Image, version, arch string) (v1.Image, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config = v1.Config{
		User: user, Entrypoint: []string{entrypoint}, WorkingDir: "/",
		Env: []string{"PATH=/usr/local/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "xpkg",
			"org.opencontainers.image.source":   "https://github.com/xpkg-dev/xpkg",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  version,
		},
	}
	return mutate.ConfigFile(image, config)
}

// pack builds a layer. Its files belong to root and have the timestamp of the epoch.
func pack(files []file) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: time.Unix(0, 0),
		}
		if f.name[len(f.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}
