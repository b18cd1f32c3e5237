package revision

// AnnotationImageSource on a Provider is the source of its install object: the registry, with a path, of the images that its
// package of the first generation names without a registry.
const AnnotationImageSource = "xpkg.dev/image-source"
