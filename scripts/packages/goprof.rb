# A formula for Homebrew on Linux and macOS. VERSION, HOME and SHA256 are filled in when a release is published.
# On macOS goprof reads recordings; it looks at JVMs on Linux only.
class Goprof < Formula
  desc "Profiler that looks into HotSpot JVMs from outside"
  homepage "HOME"
  url "HOME/archive/vVERSION.tar.gz"
  sha256 "SHA256"
  license "Apache-2.0"

  depends_on "go" => :build

  def install
    ENV["CGO_ENABLED"] = "0"
    flags = ["-s", "-w"]
    flags << "-E" << "goprof/arch/entry.start" if OS.linux?
    system "go", "build", "-trimpath", "-ldflags", flags.join(" "), "-o", bin/"goprof", "./cmd/goprof"
    generate_completions_from_executable(bin/"goprof", "completion")
    system bin/"goprof", "man", man1
  end

  test do
    (testpath/"a.collapsed").write "main;work 3\nmain;rest 1\n"
    assert_match "work", shell_output("#{bin}/goprof report a.collapsed")
  end
end
