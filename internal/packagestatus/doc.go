// Package packagestatus reads and writes the status of versions in a registry: yanked, deprecated or removed.
//
// A status is an artifact beside the version: its subject is the manifest of the version, and its tag is
// [catalog.StatusTag]. The list of tags of a repository therefore shows which versions have a status, and reading the
// status of one version takes two requests. A newer status replaces the tag; the former one remains a referrer of the
// version.
package packagestatus
