# nix-build -E 'with import <nixpkgs> {}; callPackage ./scripts/packages/goprof.nix {}'
# The first build prints the hash of the modules. Put it at vendorHash.
{ lib, stdenv, buildGoModule, installShellFiles }:

buildGoModule {
  pname = "goprof";
  version = "0.9.0";
  src = lib.cleanSource ../..;
  vendorHash = lib.fakeHash;
  subPackages = [ "cmd/goprof" ];
  env.CGO_ENABLED = "0";
  ldflags = [ "-s" "-w" ] ++ lib.optionals stdenv.hostPlatform.isLinux [ "-E" "goprof/arch/entry.start" ];
  nativeBuildInputs = [ installShellFiles ];
  doCheck = false; # the tests start JVMs

  postInstall = ''
    for shell in bash zsh fish; do
      $out/bin/goprof completion $shell >goprof.$shell
      installShellCompletion goprof.$shell
    done
    mkdir man && $out/bin/goprof man man && installManPage man/*
  '';

  meta = {
    description = "Profiler that looks into HotSpot JVMs from outside";
    license = lib.licenses.asl20;
    mainProgram = "goprof";
    platforms = lib.platforms.linux ++ lib.platforms.darwin;
  };
}
