package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is a file of an archive.
type file struct {
	name       string
	content    []byte
	executable bool
}

func (f file) mode() os.FileMode {
	if f.executable {
		return 0o755
	}
	return 0o644
}

// artifact is a published file with its digest in hexadecimal digits.
type artifact struct{ name, sha256 string }

// program builds the archive of a platform and its bill of materials.
func (o *options) program(ctx context.Context, work string, p platform, documents []file) (artifact, error) {
	path := filepath.Join(work, "xpkg")
	if err := o.compile(ctx, path, p); err != nil {
		return artifact{}, err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return artifact{}, err
	}
	if err := o.writeBill(p, path); err != nil {
		return artifact{}, fmt.Errorf("bill of materials: %w", err)
	}
	files := append([]file{{name: p.executable("xpkg"), content: program, executable: true}}, documents...)
	return o.archive("xpkg", p, files)
}

// controlPlane builds the archive of the control plane for a platform.
func (o *options) controlPlane(ctx context.Context, work string, p platform) error {
	path := filepath.Join(work, "xpkg-controlplane")
	cmd := exec.CommandContext(ctx, "sh", "controlplane/build.sh", path)
	cmd.Dir, cmd.Env = o.root, environment(p)
	if _, err := output(cmd); err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = o.archive("xpkg-controlplane", p, []file{{name: "xpkg-controlplane", content: content, executable: true}})
	return err
}

// archive writes the archive of a program: a zip file for Windows, and a compressed tar file for other systems.
func (o *options) archive(program string, p platform, files []file) (artifact, error) {
	name := fmt.Sprintf("%s_%s_%s_%s", program, strings.TrimPrefix(o.version, "v"), p.os, p.arch)
	pack := tarball
	if p.os == "windows" {
		name, pack = name+".zip", zipped
	} else {
		name += ".tar.gz"
	}
	content, err := pack(files, o.time)
	if err != nil {
		return artifact{}, err
	}
	return o.write(name, content)
}

// write writes a published file.
func (o *options) write(name string, content []byte) (artifact, error) {
	sum := sha256.Sum256(content)
	return artifact{name, hex.EncodeToString(sum[:])}, os.WriteFile(filepath.Join(o.out, name), content, 0o644)
}

// sorted returns files in the order of their names.
func sorted(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.name, b.name) })
}

// tarball returns a compressed tar file without the user, the clock and the file modes of this machine.
func tarball(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(compressed)
	for _, f := range sorted(files) {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode()), Size: int64(len(f.content)), ModTime: at,
			Format: tar.FormatPAX,
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// zipped returns a zip file, as tarball does.
func zipped(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range sorted(files) {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode())
		part, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// checksumsName is the name of the file with the digests of all others, as sha256sum writes it.
const checksumsName = "checksums.txt"

// writeChecksums writes the digests of the files in a folder. An OCI layout contains its digests.
func writeChecksums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, e := range entries {
		if e.IsDir() || e.Name() == checksumsName {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(content), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, checksumsName), []byte(out.String()), 0o644)
}
