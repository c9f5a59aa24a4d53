import { defineConfig } from "vite";

// The page is served by Python from `src/isotone/workbench/static`, under a policy without inline scripts and styles.
export default defineConfig({
  base: "./",
  publicDir: "public",
  build: {
    outDir: "../src/isotone/workbench/static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
});
