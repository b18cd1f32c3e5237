// Package localcore runs Crossplane core as a process of a local control plane, so that composite resources work
// without a container engine.
//
// The image of core comes from a registry, from an archive, or from a local binary (see [BinaryImage]). Core runs like
// the runtime of a package: in the sandbox, with a token of its ServiceAccount, and it is restarted when it exits.
//
// [Core.Run] prepares the control plane in this order:
//
//  1. the fence, so that core never writes packages (package crossplane), and the objects of Crossplane's Helm chart
//     that core needs: a ServiceAccount, its aggregated ClusterRole and the Service of its webhooks;
//  2. the certificates of core, which the manager also renews;
//  3. the initialization of core, which replaces the permissive CRDs of compositions by those of its image. The CRDs of
//     packages are withheld from it, because they belong to the manager.
//
// Then it starts core, renews its token and its certificates, and restores the fence if another client deletes it.
package localcore
